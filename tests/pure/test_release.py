"""The needs of a release: files that agree, and workflows that run targets of
`make`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import isthmus

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

needs_repository = pytest.mark.skipif(
    not WORKFLOWS, reason="an sdist has no workflows; the repository has"
)


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def packaging(name: str):
    """A module of packaging/, a folder without a package."""
    spec = importlib.util.spec_from_file_location(
        name, ROOT / "packaging" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def targets() -> set[str]:
    """The targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):.*## ", text("Makefile"), re.MULTILINE))


@needs_repository
def test_every_job_is_a_make_target():
    for path in WORKFLOWS:
        lines = re.findall(r"- run: (.*)$", path.read_text("utf-8"), re.MULTILINE)
        lines = [line for line in lines if "apt-get" not in line]
        make_calls = [re.search(r"\bmake ([a-z-]+)", line)[1] for line in lines]
        assert make_calls and set(make_calls) <= targets(), path.name


@needs_repository
def test_every_action_is_pinned_to_a_commit():
    for path in WORKFLOWS:
        actions = re.findall(r"- uses: (.*)$", path.read_text("utf-8"), re.MULTILINE)
        pinned = r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+"
        assert actions and all(re.fullmatch(pinned, x) for x in actions), path.name


@needs_repository
def test_every_python_that_is_tested_is_a_classifier_and_no_other():
    tested = re.search(r"python: \[(.*)\]", text(".github/workflows/test.yml"))[1]
    names = re.findall(r'"([\d.]+t?)"', tested)
    known = re.findall(r"Python :: (3\.\d+)\"", text("pyproject.toml"))
    assert [name for name in names if not name.endswith("t")] == known
    free = "Free Threading" in text("pyproject.toml")
    assert any(name.endswith("t") for name in names) == free


@needs_repository
def test_a_release_is_published_without_a_secret():
    release = text(".github/workflows/release.yml")
    assert "id-token: write" in release and "secrets." not in release
    assert "environment: pypi" in release and "needs: build" in release


def test_all_files_have_the_same_version():
    version_of_file = packaging("tag").versions()
    released = {
        name: x for name, x in version_of_file.items() if name != "CHANGELOG.md"
    }
    assert set(released.values()) == {isthmus.__version__}
    heads = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.MULTILINE)
    form = r"\d+\.\d+\.\d+ – (unreleased|\d{4}-\d\d-\d\d)"
    assert heads and all(re.fullmatch(form, head) for head in heads)


def test_a_tag_of_another_version_is_refused():
    with pytest.raises(SystemExit, match="has 0"):
        packaging("tag").main("v99.0.0")


def test_all_files_have_the_same_addresses():
    source = re.search(r'^Source = "(.*)"', text("pyproject.toml"), re.MULTILINE)[1]
    pages = re.search(r'^Documentation = "(.*)"', text("pyproject.toml"), re.MULTILINE)[
        1
    ]
    for name in ("CITATION.cff", "packaging/conda-forge/recipe.yaml"):
        assert source in text(name) and pages in text(name), name


def test_the_readme_of_an_index_has_no_link_that_leads_nowhere():
    hook = pytest.importorskip("hatchling.metadata.plugin.interface")
    assert hook is not None
    absolute = packaging("readme").absolute
    base = "https://example.org/isthmus"
    words = "[a](docs/a.md#b) ![c](docs/c.png) [d](https://x.y) [e](#e) [f](./LICENSE)"
    assert absolute(words, base, "1.0") == (
        f"[a]({base}/blob/v1.0/docs/a.md#b) ![c]({base}/raw/v1.0/docs/c.png) "
        f"[d](https://x.y) [e](#e) [f]({base}/blob/v1.0/LICENSE)"
    )
    led = absolute(text("README.md"), base, "1.0")
    assert not re.findall(r"\]\((?!https?:|#|mailto:)[^)]+\)", led)


def test_licences_of_all_that_is_shipped_are_named():
    project = text("pyproject.toml")
    licences = [path for path in (ROOT / "src").rglob("LICENSE*") if path.is_file()]
    assert licences
    for path in licences:
        assert f'"{path.relative_to(ROOT)}"' in project
