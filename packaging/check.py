"""Whether what is in dist/ can be released: `make release-check`.

A wheel may build and still lack a file that is only in the repository, or a dependency
that every developer happens to have. So it is checked as a user meets it: the metadata
by twine, the files by check-manifest, the licences by name; then, for both libraries,
the wheel is installed in an environment with nothing else, and README followed there
line by line (follow.py).

`make release-check ARGS="mpich examples"`: which libraries (mpich, openmpi; both), and
"examples" to run these too (all programs of docs/examples; minutes).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import follow

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
#: does some lines in a shell, and gives each when it ended well
Part = Callable[[follow.Shell], Iterator[str]]
#: ranks of an example, where they are not the usual ones; mismatch ends with an error,
#: as it must, and the last four are no MPI programs
USUAL_RANKS = 8
RANKS = {"connect": 4, "spawn": 2, "mismatch": 0}
RANKS |= dict.fromkeys(("schedule", "costs", "dialogue", "leaders"), 1)
#: in each the wheel must have
FILES = ("py.typed", "explore/d3/LICENSE", "explore/web/page.html", "explore/d3/d3.js")


def tool(name: str, *words: str | Path) -> None:
    """Run a tool of the environment in which a release is built."""
    print(f"{name} …", flush=True)
    if status := subprocess.run([BIN / name, *words], cwd=ROOT).returncode:
        sys.exit(f"{name} ended with status {status}")


def metadata(wheel: Path) -> None:
    """Refuse a wheel that lacks files or licences, or whose links lead nowhere."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = next(name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(about).decode()
    missing = [name for name in FILES if f"isthmus/{name}" not in names]
    head, _, readme = text.partition("\n\n")
    missing += [
        f"{field}: {value}"
        for field, value in (
            ("License-Expression", "BSD-3-Clause AND ISC"),
            ("License-File", "src/isthmus/explore/d3/LICENSE"),
            ("Project-URL", "Source"),
        )
        if not re.search(rf"^{field}: {re.escape(value)}", head, re.MULTILINE)
    ]
    missing += re.findall(r"\]\((?!https?:|#|mailto:)[^)]+\)", readme)
    if missing:
        sys.exit(f"{wheel.name}: missing or wrong: {', '.join(missing)}")
    print(f"passed: files, licences and links of {wheel.name}")


def examples(shell: follow.Shell) -> Iterator[str]:
    """Run the programs of docs/examples with the installed package."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    follow.add(shell.folder, f"{wheel}[remap]")  # as the tutorial says
    for path in sorted((ROOT / "docs" / "examples").glob("*.py")):
        if ranks := RANKS.get(path.stem, USUAL_RANKS):
            line = f"mpiexec -n {ranks} python -m mpi4py {path}"
            shell.run(line)
            yield line


def installed(wheel: Path, library: str, parts: Sequence[Part]) -> None:
    """Install the wheel alone, and do what a new user does."""
    with tempfile.TemporaryDirectory(prefix="isthmus-release-") as name:
        shell = follow.install(wheel, Path(name), library)
        for part in parts:
            for line in part(shell):
                print(f"passed with {library}: {line}", flush=True)


def main(words: Sequence[str]) -> None:
    """Check all that is in dist/."""
    (wheel,), (sdist,) = (list((ROOT / "dist").glob(x)) for x in ("*.whl", "*.tar.gz"))
    tool("twine", "check", "--strict", wheel, sdist)
    if (ROOT / ".git").exists():
        tool("check-manifest")
    metadata(wheel)
    parts: list[Part] = [follow.quick, follow.program, follow.longer]
    parts += [examples] * ("examples" in words)
    for library in [x for x in follow.LIBRARIES if x in words] or follow.LIBRARIES:
        installed(wheel, library, parts)
    print("all passed")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except follow.Failed as error:
        sys.exit(f"failed: {error}")
