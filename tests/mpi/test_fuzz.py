"""Episodes of the fuzz: others under each MPI library, in two launches.

The same ones on any machine, however quick it is; `make fuzz` goes on to others.
"""

from __future__ import annotations

import pytest

from fuzz.launch import SHARES, Plan, mode_of, parse, run
from launcher.mpirun import obstacle
from sampling import LONG
from support import TURN

#: kinds of episodes that take seconds each, or need a quiet machine: in long runs only
SLOW = ("spawned", "broken", "operators", "memory", "speed")
QUICK = tuple(x for x in SHARES if x not in SLOW)
#: so many episodes in a row have every quick mode in its share
ROUND = sum(SHARES[x] for x in QUICK)


@pytest.mark.parametrize(
    ("ranks", "level", "episodes"), [(3, "multiple", ROUND), (2, "serialized", 10)]
)
def test_random_programs(ranks, level, episodes):
    """Nothing hangs, and what arrives is what numpy makes of the ranks' numbers."""
    if obstacle():
        pytest.skip(obstacle())
    modes = tuple(SHARES) if LONG else QUICK
    times = 20 if LONG else 1
    episodes *= times
    first = 1 + TURN * episodes
    plan = Plan(ranks, level, modes, first, seconds=120 * times, episodes=episodes)
    report = run(plan)
    told = "\n".join(f"{x.text}\n{x.repeat}" for x in report.faults)
    assert not report.faults, told
    assert report.episodes == plan.episodes


def test_a_command_repeats_an_episode():
    """The command of a fault names the ranks, the level, the mode and the seed."""
    plan = Plan(5, "serialized", ("calls", "groups"), seed=40)
    (again,), asked = parse(plan.repeat("groups", 47).split("tests/fuzz ")[1].split())
    assert (again.ranks, again.level, again.modes) == (5, "serialized", ("groups",))
    assert (again.seed, again.episodes, asked.on_a_rank) == (47, 1, False)


def test_every_mode_comes():
    """Seeds one after the other have all modes among them."""
    modes = tuple(SHARES)
    assert {mode_of(modes, seed) for seed in range(60)} == set(modes)
