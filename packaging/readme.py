"""README.md for package indexes: a hook of hatchling, run when the package is built.

On an index there is no repository around the README, so a relative link leads nowhere
and a picture is missing. Each is made absolute here, to the version that is built, and
the README in the repository stays as people read it there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURES = (".png", ".svg", ".gif", ".jpg")
#: [words](target), ![words](target), and a picture that is a link
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def absolute(text: str, repository: str, version: str) -> str:
    """A README with its relative links led to a version in its repository."""
    pages, files = f"{repository}/blob/v{version}/", f"{repository}/raw/v{version}/"

    def led(found: re.Match[str]) -> str:
        target = found[1].removeprefix("./")
        picture = target.partition("#")[0].endswith(PICTURES)
        return f"]({files if picture else pages}{target})"

    return _LINK.sub(led, text)


class ReadmeHook(MetadataHookInterface):
    """Gives the project its readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        found = absolute(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": found}
