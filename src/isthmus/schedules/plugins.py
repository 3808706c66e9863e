"""Algorithms of users: Python files named by `--import` or the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def load(paths: Iterable[str]) -> None:
    """Import each file once, as a module with the file's name without the ending.

    A file is refused if another module has the name, since the import would replace
    the other module for all its users.
    """
    for path in paths:
        file = Path(path)
        if not file.is_file():
            raise ValueError(f"{path}: no such file to import algorithms from")
        loaded = sys.modules.get(file.stem)
        loaded_from = getattr(loaded, "__file__", None)
        if loaded_from is not None and os.path.samefile(loaded_from, file):
            continue
        if loaded is not None:
            raise ValueError(f"{path}: there is another module {file.stem!r}")
        spec = spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        sys.modules[file.stem] = module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[file.stem]
            raise
