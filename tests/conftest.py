"""Every test runs under the plugin that starts the MPI ones (launcher)."""

import os

import pytest
from hypothesis import settings

pytest_plugins = ["launcher", "pytester"]

#: from so many cases of a test on, libraries take turns
MANY = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="all tests, with all cases")
    parser.addoption(
        "--turns",
        action="store_true",
        help="half of many cases: MPI libraries take turns",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes its time, so only with --long")
    if config.option.long:
        os.environ["ISTHMUS_TEST_LONG"] = "1"
    # How long an example takes says nothing on a busy machine.
    examples = 100 if "ISTHMUS_TEST_LONG" in os.environ else 7
    settings.register_profile("isthmus", deadline=None, max_examples=examples)
    settings.load_profile("isthmus")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if "ISTHMUS_TEST_LONG" in os.environ:
        return
    left = [item for item in items if item.get_closest_marker("long")]
    if config.option.turns:
        left += _of_others([item for item in items if item not in left])
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def _of_others(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of every MPI test that has many cases on one number of ranks, those that are left
    to another MPI library."""
    tests: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("mpi"):
            name, _, cases = item.nodeid.partition("[")
            tests.setdefault((name, cases.rpartition("n=")[2]), []).append(item)
    if not tests:
        return []
    from support import TURN

    many = [cases for cases in tests.values() if len(cases) >= MANY]
    return [item for cases in many for item in cases[1 - TURN :: 2]]
