"""Options of pytest for all tests; the plugin `launcher` starts MPI tests."""

import gc
import os

import pytest

pytest_plugins = ["launcher", "pytester"]

#: the least cases of a test of which MPI libraries take turns
MIN_CASES_IN_TURNS = 2
#: objects made between two searches for garbage: Python's own 700 take a twentieth of
#: the time of tests that make millions of messages and marks
OBJECTS_BETWEEN_COLLECTIONS = 50_000


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


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if "ISTHMUS_TEST_LONG" in os.environ:
        return
    left = [item for item in items if item.get_closest_marker("long")]
    if config.option.turns:
        left += _of_second_library([item for item in items if item not in left])
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage less often, and not in what stays; ranks do as users' do."""
    if not session.config.pluginmanager.has_plugin("isthmus-ranks"):
        gc.freeze()
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def _of_second_library(items: list[pytest.Item]) -> list[pytest.Item]:
    """The cases left to another MPI library, of MPI tests with many cases on a number
    of ranks."""
    tests: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("mpi"):
            name, _, cases = item.nodeid.partition("[")
            tests.setdefault((name, cases.rpartition("n=")[2]), []).append(item)
    if not tests:
        return []
    from support import TURN

    in_turns = [cases for cases in tests.values() if len(cases) >= MIN_CASES_IN_TURNS]
    return [item for cases in in_turns for item in cases[1 - TURN :: 2]]
