"""A device that stands in for a GPU, of the tests that belong to the isthmus in use.

The fuzz also runs on other versions of the source, to show what it finds there; the
stand-in reaches into the library, so it is taken from the tests beside it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np


@cache
def _standin() -> Any:
    """The module of the stand-in."""
    import isthmus

    tests = Path(isthmus.__file__).parents[2] / "tests"
    spec = importlib.util.spec_from_file_location("standin", tests / "standin.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["standin"] = module
    spec.loader.exec_module(module)
    return module


@cache
def _device(kind: str, number: int) -> Any:
    """A device of a kind, one for a process: its threads and pinned memory stay."""
    return getattr(_standin(), kind)(number)


#: how arrays are put on the device that is in use
_put: Callable[[np.ndarray], Any] | None = None


def use_device(*, is_protected: bool) -> None:
    """Have a device: one whose memory nobody but it can touch, or one that copies
    beside the caller.

    The first takes copies of one thread only, as it protects memory again after each.
    """
    global _put
    module = _standin()
    kind = partial(_device, "StandIn" if is_protected else "Quick")
    memory = module.Memory if is_protected else module.Plain
    module.staged.KINDS[module.KIND] = kind
    # few bytes are kept, since a process must not hold more after more sizes
    module.staged.MOST_IDLE_PINNED_BYTES = 1 << 20
    module.staged.device_of.cache_clear()
    _put = partial(module.on_device, memory=memory)


def device_array(content: np.ndarray) -> Any:
    """A copy of an array on the device that is in use."""
    assert _put is not None
    return _put(content)
