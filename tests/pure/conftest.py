"""How often Hypothesis draws; apart from other options, as ranks need no Hypothesis."""

import os

import pytest
from hypothesis import settings


def pytest_configure(config: pytest.Config) -> None:
    is_long = config.option.long or "ISTHMUS_TEST_LONG" in os.environ
    # no deadline: on a busy machine, the time of an example says nothing
    settings.register_profile(
        "isthmus", deadline=None, max_examples=100 if is_long else 7
    )
    settings.load_profile("isthmus")
