"""The physical limit of a link, measured with plain sockets."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import names
from .tools import LabError, inside

STREAM = str(Path(__file__).with_name("stream.py"))
#: bytes to send: so many seconds of the link's rate, and not too few
SECONDS, FEWEST = 0.6, 1 << 21
TRIES = 3
PATIENCE = 60.0


@dataclass(frozen=True)
class Limits:
    """What TCP gets: seconds before a small message is there, bytes a second."""

    alpha: float
    rate: float


def measure(lab: str, sender: int, receiver: int, rate: int) -> Limits:
    """The limits from one host to another, in about two seconds; rate: of the link.

    The best of several tries, since a busy machine makes a link look slower.
    """
    size = max(FEWEST, int(SECONDS * rate / 8))
    found = [_once(lab, sender, receiver, size) for _ in range(TRIES)]
    return Limits(min(x.alpha for x in found), max(x.rate for x in found))


def _once(lab: str, sender: int, receiver: int, size: int) -> Limits:
    """One try, with so many bytes."""
    with _python(lab, receiver, "receive", str(size // 4)) as taker:
        assert taker.stdout is not None
        to = names.address(receiver), taker.stdout.readline().strip(), str(size)
        with _python(lab, sender, "send", *to) as giver:
            try:
                output, _ = taker.communicate(timeout=PATIENCE)
                return Limits(*map(float, output.split()))
            except (TypeError, subprocess.TimeoutExpired):
                message = f"host {sender} does not reach host {receiver}"
                raise LabError(message) from None
            finally:
                giver.kill()
                taker.kill()


def _python(lab: str, host: int, *arguments: str) -> subprocess.Popen[str]:
    """One side, on its host."""
    command = inside(names.host(lab, host), [sys.executable, "-I", STREAM, *arguments])
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
