"""Numbers for the words of the report on Moody, Ahn, de Supinski 2011."""

from __future__ import annotations

from collections.abc import Sequence

from ..groups.bins import BINS
from .moody2011 import BIG, CHENG, FEW, FEW_BINS, LENGTHS, SERIAL, SMALL
from .moody2011_points import ENTRY, Point, machine, patient_radix
from .moody2011_ratios import LABELS, fastest, only, pick


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def entry_for(points: Sequence[Point], ratio: float, big: int = BIG) -> float:
    """The seconds of an entry at which serial sorts take so many times Bitonic's."""
    serial = fastest(pick(points, *SERIAL, figure=3, n=big))
    bitonic = only(points, "bitonic", figure=3, n=big)
    more = ratio * bitonic.network - serial.network
    return more / (serial.entries - ratio * bitonic.entries)


def _assumed() -> dict[str, str]:
    model = machine()
    return {
        "alpha": f"{1e6 * model.alpha:g} µs",
        "rate": f"{1e-6 / model.beta:.0f} MB/s",
        "entry": f"{1e6 * ENTRY:g} µs",
        "more_bytes": str(LENGTHS[1] - LENGTHS[0]),
        "more_time": f"{1e6 * model.beta * (LENGTHS[1] - LENGTHS[0]):.1f} µs",
        "few": str(FEW),
        "bins": str(BINS),
        "few_bins": str(FEW_BINS),
    }


def _serial(points: Sequence[Point], big: int) -> dict[str, str]:
    """What the serial sorts and Cheng's take."""
    serial = fastest(pick(points, *SERIAL, n=big, figure=3))
    cheng = fastest(pick(points, *CHENG, n=big, figure=3))
    table = only(points, "allgather_mpi", n=big, figure=3).busiest
    return {
        "entry_100": f"{1e6 * entry_for(points, 100, big):.2g} µs",
        "serial_messages": _ms(serial.network),
        "serial_work": _ms(serial.work),
        "table": f"{table / 2**20:.1f} MiB",
        "cheng": LABELS[cheng.algorithm],
        "cheng_messages": _ms(cheng.network),
        "cheng_work": _ms(cheng.work),
        "cheng_rounds": str(cheng.rounds),
    }


def _radix(points: Sequence[Point], small: int, big: int) -> dict[str, str]:
    """Radix against Bitonic: ours, with short keys, and one that never stops early."""
    bits = (big - 1).bit_length()
    bitonic = {n: only(points, "bitonic", n=n, figure=3) for n in (small, big)}
    radix = only(points, "radix", n=big, figure=3)
    short = only(points, "radix", n=big, figure=3, bits=bits)

    def against(other: Point) -> str:
        return f"{other.seconds / bitonic[other.n].seconds:.1f}"

    patient = {n: patient_radix(n).seconds for n in (small, big)}
    fall = patient[small] / bitonic[small].seconds * bitonic[big].seconds / patient[big]
    return {
        "patient_growth": f"{patient[big] / patient[small]:.1f}",
        "patient_fall": f"{fall:.2f}",
        "paper_fall": f"{5.5 / 3.0:.2f}",
        "bitonic_growth": f"{bitonic[big].seconds / bitonic[small].seconds:.1f}",
        "bitonic_ms": _ms(bitonic[big].seconds),
        "bitonic_rounds": str(bitonic[big].rounds),
        "radix_rounds": str(radix.rounds),
        "short_bits": str(bits),
        "radix_short": against(short),
        "patient_small": against(patient_radix(small)),
        "patient_big": against(patient_radix(big)),
        "patient_rounds": str(patient_radix(big).rounds),
    }


def _hash(points: Sequence[Point], big: int) -> dict[str, str]:
    """Bitonic against Hash with more bins and with fewer."""
    found = {}
    for words, groups in (("many", big // 2), ("few", FEW)):
        where = {"n": big, "figure": 4, "groups": groups, "length": LENGTHS[0]}
        bitonic = only(points, "bitonic", **where)
        for bins in (BINS, FEW_BINS):
            one = only(points, "hash", **where, bins=bins)
            found[f"{words}_{bins}"] = f"{bitonic.seconds / one.seconds:.2f}"
            found[f"{words}_{bins}_rounds"] = str(one.rounds)
            found[f"rounds_{bins}"] = f"{bitonic.rounds / one.rounds:.1f}"
    return found


def _simulating(points: Sequence[Point], big: int) -> dict[str, str]:
    slowest = max((p for p in points if p.n == big), key=lambda p: p.took)
    return {
        "big": f"{big:,}".replace(",", " "),
        "slowest": f"{slowest.took:.0f} s",
        "slowest_name": LABELS[slowest.algorithm],
    }


def facts(
    points: Sequence[Point], small: int = SMALL, big: int = BIG
) -> dict[str, str]:
    """Numbers for the words of the report, from the points."""
    return {
        **_assumed(),
        **_serial(points, big),
        **_radix(points, small, big),
        **_hash(points, big),
        **_simulating(points, big),
    }
