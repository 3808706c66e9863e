"""A device that stands in for a GPU, of the tests that belong to the isthmus in use.

The fuzz also runs on other versions of the source, to show what it finds there; the
stand-in reaches into the library, so it is taken from the tests beside it.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


@cache
def standin() -> Any:
    """The stand-in, with its device in place."""
    import isthmus

    tests = Path(isthmus.__file__).parents[2] / "tests"
    spec = importlib.util.spec_from_file_location("standin", tests / "standin.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["standin"] = module
    spec.loader.exec_module(module)
    module.staged.KINDS[module.KIND] = module.StandIn
    return module


def device_array(content: np.ndarray) -> Any:
    """A copy of an array, in memory that only copies of the device can touch."""
    return standin().on_device(content)
