"""What the built site has beyond the Markdown of its pages: a Sphinx extension.

The pages are read in two places: on a repository's web page, which knows Markdown and
nothing else, and on the site. Directives would show there as text, so they stand in
comments that Markdown hides, and are opened here before Sphinx reads a page:

    <!-- site                   what follows, up to the end of the comment
    ```{toctree}
    …
    ```
    -->

    <!-- explorer step=2 -->    the command below it, as a page in a frame
    ```text
    isthmus explore allgather segmented --groups 4,2
    ```

A picture beside which lies one whose name ends with -dark is shown in two forms. In the
tables of the reference, names are linked to what the page documents below them.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from isthmus.cli.app import run

#: the folder of the site's explorers, in what is built
EXPLORERS = "_explorers"
SITE_ONLY = re.compile(r"^<!-- site\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
EXPLORER = re.compile(
    r"^<!-- explorer(?P<options>[^\n]*?) -->\n```text\n"
    r"isthmus explore (?P<words>[^\n]*)\n```$",
    re.MULTILINE,
)
PICTURE = re.compile(r"^!\[(?P<alt>[^]\n]*)\]\((?P<path>[^)\n]*)\.png\)$", re.MULTILINE)
DOCUMENTED = re.compile(
    r"^\.\. auto\w+:: (?P<name>[\w.]+).*\n(?: +:members: (?P<members>.*)\n)?",
    re.MULTILINE,
)
CODE = re.compile(r"`(?P<path>[\w.]+)(?P<arguments>\([^`]*\))?`")


class Explorer(SphinxDirective):
    """A frame with what `isthmus explore` writes, and its command below it."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {  # noqa: RUF012
        "step": directives.nonnegative_int,
        "height": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """The frame as HTML, after the command wrote its page into the site."""
        words = shlex.split(self.arguments[0])
        name = re.sub(r"[^\w]+", "-", "-".join(words)).strip("-")
        path = Path(self.env.app.outdir, EXPLORERS, f"{name}.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(io.StringIO()):
            status = run(["explore", *words, "-o", str(path)])
        if status:
            raise self.error(f"isthmus explore {' '.join(words)} returned {status}")
        up = "../" * self.env.docname.count("/")
        address = f"{up}{EXPLORERS}/{name}.html#step={self.options.get('step', 1)}"
        title = escape(f"{words[0]}, {words[1]}: an explorer")
        frame = (
            f'<figure class="explorer"><iframe src="{escape(address)}" loading="lazy" '
            f'title="{title}" height="{self.options.get("height", 560)}"></iframe>'
            f"<figcaption><code>isthmus explore {escape(self.arguments[0])}</code> "
            f'<a href="{escape(address)}">open by itself</a></figcaption></figure>'
        )
        return [nodes.raw("", frame, format="html")]


def opened(page: str, folder: Path) -> str:
    """A page with its comments for the site opened; `folder` is where the page lies."""

    def explorer(match: re.Match[str]) -> str:
        pairs = (x.split("=") for x in match["options"].split())
        options = "".join(f":{name}: {value}\n" for name, value in pairs)
        return f"```{{explorer}} {match['words']}\n{options}```"

    def two_forms(match: re.Match[str]) -> str:
        path, alt = match["path"], match["alt"]
        if not (folder / f"{path}-dark.png").exists():
            return match[0]
        forms = ("", "only-light"), ("-dark", "only-dark")
        return "\n\n".join(
            f"```{{image}} {path}{end}.png\n:alt: {alt}\n:class: {shown}\n```"
            for end, shown in forms
        )

    page = _linked(SITE_ONLY.sub(r"\1", page))
    return PICTURE.sub(two_forms, EXPLORER.sub(explorer, page))


def _linked(page: str) -> str:
    """A page whose tables link the names that the page documents."""
    targets = {}
    for match in DOCUMENTED.finditer(page):
        targets[match["name"].rpartition(".")[2]] = match["name"]
        for member in (match["members"] or "").split(", "):
            targets[member] = f"{match['name']}.{member}"

    def link(match: re.Match[str]) -> str:
        target = targets.get(match["path"].rpartition(".")[2])
        return f"{{py:obj}}{match[0][:-1]} <{target}>`" if target else match[0]

    lines = page.splitlines(keepends=True)
    return "".join(CODE.sub(link, x) if x.startswith("|") else x for x in lines)


def _open_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Open the comments of a page that Sphinx has read."""
    source[0] = opened(source[0], (Path(app.srcdir) / name).parent)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the opening of comments with Sphinx."""
    app.add_directive("explorer", Explorer)
    app.connect("source-read", _open_page)
    return {"parallel_read_safe": True}
