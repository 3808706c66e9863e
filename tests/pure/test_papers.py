"""Files and tests named in docs/papers.md exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def test_every_file_and_test_that_the_page_names_exists():
    names = re.findall(r"`((?:src|tests|docs)/[\w/.-]+)(?:::(\w+))?`", TEXT)
    assert len(names) > 60
    for path, test in names:
        assert (ROOT / path).exists(), path
        if test:
            assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), test


def test_every_line_says_that_it_is_done_or_why_not():
    lines = re.findall(r"^\|(.+)\|$", TEXT, re.MULTILINE)
    rows = [x.split(" | ") for x in lines if not x.startswith("---")]
    assert len(rows) > 50
    for first, _, done in rows:
        heading = first.strip() in ("what", "in the paper", "in the slides")
        assert bool(done.strip()) != heading, first
        assert "missing" not in done, first


def test_every_page_and_algorithm_that_it_names_exists():
    for link in re.findall(r"\]\(([\w/.-]+)(?:#[\w-]+)?\)", TEXT):
        assert (ROOT / "docs" / link).exists(), link
    code = "".join(x.read_text(encoding="utf-8") for x in (ROOT / "src").rglob("*.py"))
    for name in re.findall(r"`([a-z]\w+_\w+)`", TEXT):
        assert re.search(rf"\b{name}\b", code), name
