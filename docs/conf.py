"""How the documentation is built: `make docs`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import without_mpi  # noqa: E402

without_mpi.install(always=True)  # the pages need no MPI, wherever they are built

import isthmus  # noqa: E402

project = "isthmus"
author = "The isthmus authors"
project_copyright = author
version = release = isthmus.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "for_site",
]
exclude_patterns = ["_build", "examples"]

html_theme = "furo"
html_title = f"isthmus {version}"
html_static_path = ["_static"]
html_css_files = ["isthmus.css"]
html_js_files = ["explorers.js"]
html_show_sphinx = False
html_copy_source = False

myst_heading_anchors = 3

default_role = "code"  # docstrings write code in single backticks
autodoc_member_order = "bysource"
autodoc_typehints_format = "fully-qualified"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Index", "Mask", "Spans")}
maximum_signature_line_length = 72

intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "mpi4py": ("https://mpi4py.readthedocs.io/en/stable", None),
}
intersphinx_timeout = 10


def _is_no_outage(record: logging.LogRecord) -> bool:
    """Without the network the pages lack links to other projects; that is no error."""
    return not str(record.msg).startswith("failed to reach any of the inventories")


logging.getLogger("sphinx.sphinx.ext.intersphinx").addFilter(_is_no_outage)
