"""Every test runs under the plugin that starts the MPI ones (launcher)."""

import os

import pytest
from hypothesis import settings

pytest_plugins = ["launcher", "pytester"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="all tests, with all cases")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes its time, so only with --long")
    if config.option.long:
        os.environ["ISTHMUS_TEST_LONG"] = "1"
    # How long an example takes says nothing on a busy machine.
    examples = 100 if "ISTHMUS_TEST_LONG" in os.environ else 20
    settings.register_profile("isthmus", deadline=None, max_examples=examples)
    settings.load_profile("isthmus")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if "ISTHMUS_TEST_LONG" not in os.environ:
        left = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
