"""What the reports claim."""

from __future__ import annotations

import pytest

from isthmus.reproduce import kang2019_figures as figures
from isthmus.reproduce.kang2019 import (
    CLUSTERS,
    SETTINGS,
    SIZES,
    Job,
    Point,
    blocks,
    contenders,
    groups,
    machine,
    multiple,
    transfer_gain,
)

BIG = CLUSTERS[1]


def test_the_settings_are_those_of_the_paper():
    found = [groups(SETTINGS[1], c.n) for c in CLUSTERS]
    assert found == [(50, 14), (200, 56), (1600, 448)]
    for setting in SETTINGS:
        a, b = blocks(setting, CLUSTERS[2], SIZES[-1])
        m = max(sum(a), sum(b))
        expected = (m + 3 * sum(a) + 3 * sum(b)) / m
        assert expected == pytest.approx(setting.expected, rel=0.004), setting


@pytest.mark.parametrize("number", [1, 5, 6, 7, 8])
def test_expected_gains_come_out_within_three_percent(number):
    gain = transfer_gain(SETTINGS[number - 1], BIG)
    assert gain.simulated == pytest.approx(gain.expected, rel=0.03)


@pytest.mark.parametrize(("number", "loss"), [(2, 1.12), (3, 1.12), (4, 25 / 7 / 3)])
def test_what_rounding_costs_algorithm_1_on_25_to_7(number, loss):
    gain = transfer_gain(SETTINGS[number - 1], BIG)
    assert gain.simulated == pytest.approx(gain.expected / loss, rel=0.03)


def test_balanced_has_no_such_loss():
    for setting in SETTINGS[1:4]:
        job = Job(setting, BIG, SIZES[-1], "balanced+ring")
        assert multiple(job).multiple < 1.03


def test_machines_have_the_processes_of_the_cluster():
    assert [machine(c).levels[0].size for c in CLUSTERS] == [1, 1, 32]


def test_figures_of_made_up_points():
    points = [
        Point(s.number, c.name, c.n, size, name, size * 1e-9)
        for s in SETTINGS
        for c in CLUSTERS
        for size in SIZES
        for name in contenders(s)
    ]
    assert len(figures.times(points, SETTINGS[:4]).axes) == 12
    assert len(figures.improvements(points).axes) == 3
    drawn = [name for name, _ in figures.exchanges()]
    assert drawn == ["figure1", "figure2", "figure3"]
