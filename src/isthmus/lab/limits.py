"""The physical limit of a link, measured with plain sockets."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import names
from .tools import LabError, inside

STREAM_SCRIPT = str(Path(__file__).with_name("stream.py"))
#: a stream lasts this long at the link's rate, but has at least these bytes
STREAM_SECONDS, MIN_STREAM_BYTES = 0.6, 1 << 21
LIMIT_ATTEMPTS = 3
SECONDS_FOR_A_STREAM = 60.0


@dataclass(frozen=True)
class Limits:
    """TCP on a link: the seconds of a small message's way, and bytes a second."""

    alpha: float
    rate: float


def measure(lab: str, sender: int, receiver: int, rate: int) -> Limits:
    """The limits from one host to another, in about two seconds.

    `rate` is the link's, in bits a second. The best of several attempts counts, since a
    busy machine makes a link look slower.
    """
    size = max(MIN_STREAM_BYTES, int(STREAM_SECONDS * rate / 8))
    attempts = [_once(lab, sender, receiver, size) for _ in range(LIMIT_ATTEMPTS)]
    return Limits(min(x.alpha for x in attempts), max(x.rate for x in attempts))


def _once(lab: str, sender: int, receiver: int, size: int) -> Limits:
    """The limits by one stream of `size` bytes."""
    with _python(lab, receiver, "receive", str(size // 4)) as receiving:
        assert receiving.stdout is not None
        target = names.address(receiver), receiving.stdout.readline().strip(), str(size)
        with _python(lab, sender, "send", *target) as sending:
            try:
                output, _ = receiving.communicate(timeout=SECONDS_FOR_A_STREAM)
                return Limits(*map(float, output.split()))
            except (TypeError, subprocess.TimeoutExpired):
                message = f"host {sender} does not reach host {receiver}"
                raise LabError(message) from None
            finally:
                sending.kill()
                receiving.kill()


def _python(lab: str, host: int, *arguments: str) -> subprocess.Popen[str]:
    """The script of a side of a stream, started on its host."""
    command = inside(
        names.host(lab, host), [sys.executable, "-I", STREAM_SCRIPT, *arguments]
    )
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
