"""Every test runs under the plugin that starts the MPI ones (launcher)."""

import os

import pytest
from hypothesis import settings

pytest_plugins = ["launcher", "pytester"]

# how long an example takes says nothing on a busy machine
settings.register_profile("isthmus", deadline=None)
settings.load_profile("isthmus")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="all tests, with all cases")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes its time, so only with --long")
    if config.option.long:
        os.environ["ISTHMUS_TEST_LONG"] = "1"


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if "ISTHMUS_TEST_LONG" not in os.environ:
        left = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
