"""The cases that run: a sample, and in turns all cases."""

from __future__ import annotations

import pytest

import sampling


@pytest.mark.parametrize("stride", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 12])
def test_in_turns_all_cases_run(monkeypatch, n, stride):
    monkeypatch.setattr(sampling, "LONG", False)
    turns = [sampling.some(range(n), stride, turn) for turn in range(stride)]
    assert {x for sample in turns for x in sample} == set(range(n))
    assert all(len(sample) <= -(-n // stride) for sample in turns)
    assert n == 0 or all(turns)


def test_all_cases_run_with_the_long_tests(monkeypatch):
    monkeypatch.setattr(sampling, "LONG", True)
    assert sampling.some(range(9), 4, 2) == list(range(9))


def test_long_tests_run_only_where_they_are_asked_for(pytester):
    conftest = pytester.path / "conftest.py"
    conftest.write_text(
        "from pathlib import Path\n"
        f"exec(Path({__file__!r}).parents[1].joinpath('conftest.py').read_text())\n"
        "pytest_plugins = ()\n"
    )
    pytester.makepyfile(
        """
        import os, pytest
        def test_short(): ...
        @pytest.mark.long
        def test_long(): assert "ISTHMUS_TEST_LONG" in os.environ
        """
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ISTHMUS_TEST_LONG", raising=False)
        result = pytester.runpytest_subprocess("-q")
        result.assert_outcomes(passed=1, deselected=1)
        result = pytester.runpytest_subprocess("-q", "--long")
        result.assert_outcomes(passed=2)
