"""Make the tables of docs/results.md from the files that `isthmus bench --csv` wrote.

python docs/results/tables.py
"""

from __future__ import annotations

import csv
from pathlib import Path

HERE = Path(__file__).parent
LIBRARIES = ("mpich", "openmpi")


def size(nbytes: int) -> str:
    """Bytes, in the largest unit that is not more."""
    for name, unit in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes} B"


def read(name: str) -> list[dict[str, str]]:
    """The rows of a file."""
    with (HERE / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(rows: list[dict[str, str]], cell) -> list[str]:
    """A row for each operation, a column for each size, in the order of the file."""
    sizes = list(dict.fromkeys(int(row["bytes"]) for row in rows))
    found: dict[str, dict[int, dict[str, dict[str, str]]]] = {}
    for row in rows:
        of_size = found.setdefault(row["operation"], {})
        of_size.setdefault(int(row["bytes"]), {})[row["contender"]] = row
    lines = [f"| {rows[0]['library']} | {' | '.join(map(size, sizes))} |"]
    lines += ["|---|" + "---:|" * len(sizes)]
    for operation, by_size in found.items():
        cells = [cell(by_size[n]) if n in by_size else "" for n in sizes]
        lines.append(f"| {operation.capitalize()} | {' | '.join(cells)} |")
    return [*lines, ""]


def forms(of: dict[str, dict[str, str]]) -> str:
    """Blocking, and in parentheses persistent."""
    ratios = [float(of[x]["ratio"]) for x in ("auto", "auto, persistent") if x in of]
    return f"{ratios[0]:.2f}" + "".join(f" ({x:.2f})" for x in ratios[1:])


def microseconds(of: dict[str, dict[str, str]]) -> str:
    """Ours and the library's, in microseconds."""
    ours, native = (1e6 * float(of[x]["seconds"]) for x in ("auto", "native"))
    return f"{ours:.3g} / {native:.3g}"


def limit(of: dict[str, dict[str, str]]) -> str:
    """The ratio, and in parentheses the multiple of the limit, if there is one."""
    multiple = of["auto"]["multiple"]
    said = f" ({float(multiple):.2f})" if multiple else ""
    return f"{float(of['auto']['ratio']):.2f}{said}"


def write(name: str, files: str, cell) -> None:
    """One page part with a table for each library."""
    lines = [x for lib in LIBRARIES for x in table(read(files.format(lib)), cell)]
    (HERE / name).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write("one_node_ratios.txt", "{}-one_node.csv", forms)
    write("one_node_times.txt", "{}-one_node.csv", microseconds)
    write("one_node_same.txt", "{}-one_node-same.csv", forms)
    write("four_a_host.txt", "{}-four_a_host.csv", limit)
    write("one_a_host.txt", "{}-one_a_host.csv", limit)
