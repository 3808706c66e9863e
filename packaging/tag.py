"""Whether a tag is the version that all files say: `make release-tag TAG=v1.2.3`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: where a version stands, and how
PLACES = {
    "pyproject.toml": r'^version = "(.*)"$',
    "src/isthmus/__init__.py": r'^__version__ = "(.*)"$',
    "CITATION.cff": r"^version: (.*)$",
    "packaging/conda-forge/recipe.yaml": r'^  version: "(.*)"$',
    "CHANGELOG.md": r"^## (\d\S*) – \d{4}-\d\d-\d\d$",
}


def versions() -> dict[str, str]:
    """The version in each file; in the changelog, of the newest entry that has one."""
    found = {}
    for name, pattern in PLACES.items():
        lines = re.findall(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)
        found[name] = lines[0] if lines else "none"
    return found


def main(tag: str) -> None:
    """End with status 1 where a file has another version."""
    wrong = {name: x for name, x in versions().items() if f"v{x}" != tag}
    if wrong:
        words = ", ".join(f"{name} has {version}" for name, version in wrong.items())
        sys.exit(f"{tag or 'no tag'}: {words}")
    print(f"{tag}: all files agree")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
