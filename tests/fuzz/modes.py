"""Kinds of episodes. Each is a function of a `Stage` that raises what is wrong."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import isthmus

from . import bounds, broken, operators, places
from .places import Place
from .series import FORMS, IS_OPEN_MPI, FaultError, Going, Options, Series
from .spellings import Buffer
from .standins import use_device
from .transfers import Group, composition, transfer

#: calls that may be under way at once, and calls of each series
UNDER_WAY, TURNS = 4, 24
#: calls of a steady series: more than a trial of the candidates needs on one node
STEADY_TURNS = 150
#: processes that are spawned, and the part of their episode
CHILDREN, SPAWNED = 2, 7
#: the names of MPI's thread levels
THREAD_LEVELS = {
    MPI.THREAD_SINGLE: "single",
    MPI.THREAD_FUNNELED: "funneled",
    MPI.THREAD_SERIALIZED: "serialized",
    MPI.THREAD_MULTIPLE: "multiple",
}
#: seconds that a call may wait where something was broken, or may be
LIMIT = 4.0

Rng = np.random.Generator


@dataclass
class Stage:
    """What an episode has: its ranks, its chance, and where it is now."""

    world: MPI.Intracomm
    seed: int
    level: int
    rng: Rng
    alone: Rng
    #: what this rank does, in words, for each of its threads
    now: dict[int, Series]

    @classmethod
    def of(cls, world: MPI.Intracomm, seed: int, part: int = 0) -> Stage:
        """The stage of an episode, or of one of its threads."""
        rng = np.random.default_rng((seed, part))
        alone = np.random.default_rng((seed, part, 1 + world.rank))
        return cls(world, seed, MPI.Query_thread(), rng, alone, {})

    @property
    def is_multiple(self) -> bool:
        """Whether threads may call MPI at the same time."""
        return self.level == MPI.THREAD_MULTIPLE

    def is_refusal(self, error: BaseException) -> bool:
        """Whether an error says that a call is not there at this thread level."""
        return not self.is_multiple and "MPI_THREAD_MULTIPLE" in str(error)


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Variables of the environment, for communicators whose first call is made here."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _calls(stage: Stage, on: list[Place], options: Options, turns: int) -> None:
    """Several series at once, whose calls are completed in any order."""
    series = [
        Series(place, stage.rng, stage.alone, options)
        for place in on
        for _ in range(1 + int(stage.rng.integers(2)))
    ]
    ways = 4 if stage.is_multiple else 2
    going: list[Going] = []
    for turn in range(turns * len(series)):
        one = series[int(stage.rng.integers(len(series)))]
        stage.now[threading.get_ident()] = one
        if (begun := _begun(stage, one, turn)) is not None:
            going.append(begun)
        # without threads calls go forward in their own Wait only, one after the other
        most = UNDER_WAY if stage.is_multiple else 0
        while len(going) > most or (going and stage.alone.random() < 0.5):
            ended = going.pop(int(stage.alone.integers(len(going))))
            ended.end(int(stage.alone.integers(ways)))
    for ended in going:
        ended.end(0)


def _begun(stage: Stage, series: Series, turn: int) -> Going | None:
    """A call that goes on; None where it is refused for the thread level."""
    try:
        return series.start(turn)
    except RuntimeError as error:
        if not stage.is_refusal(error):
            raise
        return None


def _settings(rng: Rng) -> dict[str, str]:
    """Variables that communicators are made under."""
    per_node = (0, 0, 1, 2)[int(rng.integers(4))]
    trial = int(rng.random() < 0.7)
    return {"ISTHMUS_PER_NODE": str(per_node), "ISTHMUS_TRIAL": str(trial)}


def right_calls(stage: Stage) -> None:
    """Calls that are right, and some that are refused, on several communicators."""
    with variables(**_settings(stage.rng)):
        _right_calls(stage)


def _two_places(stage: Stage) -> list[Place]:
    return [places.draw(stage.rng, stage.world) for _ in range(2)]


def _right_calls(
    stage: Stage,
    devices: float = 0.0,
    forms: Any = FORMS,
    on: Sequence[Place] = (),
) -> None:
    operator = composition()
    on = on or _two_places(stage)
    if stage.rng.random() < 0.3:
        on[0].comm.timeout = 60.0
    refused = float(stage.rng.choice([0.0, 0.2]))
    options = Options(stage.level, devices, refused, operator, forms=forms)
    _calls(stage, on, options, TURNS)
    for place in on:
        place.free()
    operator.Free()


def steady(stage: Stage) -> None:
    """What programs do most: one blocking call in a loop, by no algorithm's name."""
    with variables(ISTHMUS_TRIAL="1"):
        place = places.draw(stage.rng, stage.world, "bbi")
    refused = float(stage.rng.choice([0.0, 0.0, 0.2]))
    options = Options(stage.level, 0.0, refused, forms=("blocking",))
    for _ in range(2):
        series = Series(place, stage.rng, stage.alone, options)
        series.algorithm = None
        stage.now[threading.get_ident()] = series
        for turn in range(STEADY_TURNS):
            series.start(turn).end(0)
    place.free()


def on_devices(stage: Stage) -> None:
    """Right calls and refused ones, with half of the arrays on a device."""
    is_protected = bool(stage.rng.random() < 0.5)
    use_device(is_protected=is_protected)
    with variables(**_settings(stage.rng)):
        _right_calls(stage, 0.5, ("blocking",) if is_protected else FORMS)


def threads(stage: Stage) -> None:
    """Two threads at the same time, each on communicators of its own."""
    if not stage.is_multiple:
        right_calls(stage)
        return
    worlds = [stage.world.Dup() for _ in range(2)]
    errors: list[BaseException] = []

    def run(part: int) -> None:
        try:
            _right_calls(beside[part], on=places_of[part])
        except BaseException as error:
            errors.append(error)

    beside = [Stage.of(x, stage.seed, 1 + i) for i, x in enumerate(worlds)]
    for one in beside:
        one.now = stage.now
    runs = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    places_of: list[Sequence[Place]] = [(), ()]
    with variables(**_settings(stage.rng)):
        if IS_OPEN_MPI:
            # two threads that form communicators of parts of their ranks at the same
            # time hang in Open MPI itself (5.0.11; 3 of 3 launches of a small program)
            places_of = [_two_places(x) for x in beside]
        for thread in runs:
            thread.start()
        for thread in runs:
            thread.join()
    if errors:
        raise errors[0]
    for world in worlds:
        world.Free()


def groups(stage: Stage) -> None:
    """Groups that are split off, merged and freed, with calls on all of them."""
    _used(stage, _split_off, _merged)


def spawned(stage: Stage) -> None:
    """Two new processes, calls between them and these ranks, and their end."""
    _used(stage, _spawned)


def _used(stage: Stage, *makers: Callable[[Stage], Place]) -> None:
    options = Options(stage.level, 0.0, 0.1)
    for make in makers:
        if make is _merged and stage.world.size == 1:
            continue
        place = make(stage)
        part = Stage.of(stage.world, stage.seed, SPAWNED)
        part.now = stage.now
        _calls(part, [place], options, 6)
        place.free()


def _split_off(stage: Stage) -> Place:
    """Groups by the name that each rank gives."""
    n, world = stage.world.size, isthmus.Intracomm(stage.world.Dup())
    names = stage.rng.integers(3, size=n).tolist()
    group = isthmus.split(world, f"node {names[world.rank]}")
    mine = [i for i in range(n) if names[i] == names[world.rank]]
    if group.allgather(world.rank) != mine:
        raise FaultError(f"split: the group is not {mine}")

    def free() -> None:
        group.free()
        world.Free()

    ranks = tuple(range(len(mine)))
    numbers = Group(group.comm.rank, ranks, ranks)
    return Place("inside split", group.comm, numbers, group.comm, free)


def _merged(stage: Stage) -> Place:
    """Both sides of an intercommunicator as one group."""
    p = int(stage.rng.integers(1, stage.world.size))
    pair = places.between(stage.world, p)
    merged = pair.comm.Merge(stage.world.rank >= p)

    def free() -> None:
        merged.Free()
        pair.free()

    ranks = tuple(range(merged.size))
    numbers = Group(merged.rank, ranks, ranks)
    return Place("inside merged", merged, numbers, pair.everyone, free)


def _spawned(stage: Stage) -> Place:
    """These ranks and two new processes, which run `of_child`."""
    fuzz = str(Path(__file__).parent)
    arguments = [fuzz, "--child-of", str(stage.world.size), "--seed", str(stage.seed)]
    arguments += ["--level", THREAD_LEVELS[stage.level]]
    world = isthmus.Intracomm(stage.world)
    inter = world.Spawn(sys.executable, arguments, maxprocs=CHILDREN)
    return _spawned_place(inter, stage.world.size, is_child=False)


def of_child(parents: int, seed: int) -> None:
    """What a spawned process does: its part of the same calls."""
    inter = isthmus.Intracomm.Get_parent()
    stage = Stage.of(MPI.COMM_WORLD, seed, SPAWNED)
    place = _spawned_place(inter, parents, is_child=True)
    _calls(stage, [place], Options(stage.level, 0.0, 0.1), 6)
    place.free()


def _spawned_place(inter: Any, parents: int, *, is_child: bool) -> Place:
    everyone = MPI.Intercomm.Merge(inter, is_child)
    low, high = tuple(range(parents)), tuple(range(parents, parents + CHILDREN))
    here, there = (high, low) if is_child else (low, high)
    numbers = Group(here[inter.rank], here, there)

    def free() -> None:
        everyone.Free()
        inter.Disconnect()

    return Place("between parents and children", inter, numbers, everyone, free)


def checked(stage: Stage) -> None:
    """In checked mode every mismatch is the same error on every rank, and no trace of
    it is left: of operation, form, root, size, operator, algorithm or a wrong call."""
    with variables(ISTHMUS_CHECK="1", ISTHMUS_TRIAL="0"):
        place = places.draw(stage.rng, stage.world, "bbbi")
    place.comm.timeout = 20.0
    options = Options(stage.level, 0.0, 0.0)
    comparable = [x for x in _CHECKED if place.kind == "between" or x not in _NATIVE]
    ours = Options(stage.level, 0.0, 0.0, operations=comparable, forms=_forms(stage))
    odd = int(stage.rng.integers(1 << 20)) % place.ranks
    position = place.comm.rank if place.group.is_one else place.group.me
    for turn in range(8):
        series = [Series(place, stage.rng, stage.alone, ours) for _ in range(2)]
        for one in series:
            one.algorithm = None
        form = [str(stage.rng.choice(_forms(stage))) for _ in range(2)]
        same_form = bool(stage.rng.random() < 0.3)
        if same_form:
            form[1] = form[0]
        elif stage.rng.random() < 0.5:  # the same call, but for its form
            series[1].drawn = series[0].drawn
        mine = series[int(position == odd)]
        stage.now[threading.get_ident()] = mine
        mine.form = form[int(position == odd)]
        differ = series[0].drawn.op != series[1].drawn.op or form[0] != form[1]
        if differ and place.ranks > 1:
            _all_raise(stage, place, mine, turn)
        calls = Series(place, stage.rng, stage.alone, options)
        stage.now[threading.get_ident()] = calls
        if (going := _begun(stage, calls, turn)) is not None:
            going.end(0)
    place.free()


#: operations that are compared, and those that are mpi4py's own inside a group
_NATIVE = ("Barrier",)
_CHECKED = ("Allgather", "Allgatherv", "Allreduce", "Alltoall", "Barrier", "Bcast")


def _forms(stage: Stage) -> tuple[str, ...]:
    """Forms that are there at every thread level."""
    return ("blocking", "nonblocking") if stage.is_multiple else ("blocking",)


def _all_raise(stage: Stage, place: Place, mine: Series, turn: int) -> None:
    """Every rank raises MismatchError."""
    args, _ = mine.arguments(transfer(place.group, mine.drawn, turn))
    mine.now = f"call {turn}, mismatch, {mine.form} {mine}"
    try:
        request = mine.make(mine.form, args, None)
        if request is not None:
            request.Wait()
    except isthmus.MismatchError:
        return
    except Exception as error:
        raise FaultError(f"{mine.now}: {type(error).__name__}: {error}") from error
    raise FaultError(f"{mine.now}: no MismatchError")


#: operations in which a message can be longer than its place
_SIZED = (
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Gather",
    "Gatherv",
    "Bcast",
)


#: sizes whose messages stay below 4 KiB: Open MPI writes longer ones whole, also beyond
#: the place that they are received into, and fails with MPI_ERR_TRUNCATE only then
#: (5.0.11; `Irecv` of 4,080 of 4,096 bytes shows it, without isthmus)
_NEVER_WRITTEN_BEYOND = ("equal", "zeros")


def sizes(stage: Stage) -> None:
    """Where one rank sends more than another expects, some rank raises; nobody gets
    wrong data in silence. Without threads the MPI library's own calls have no limit."""
    if not stage.is_multiple:
        return
    for _ in range(2):
        place = places.draw(stage.rng, stage.world, "bbi")
        place.comm.timeout = LIMIT
        ours = [x for x in _SIZED if place.kind == "between" or x[0] == "A"]
        options = Options(stage.level, 0.0, 0.0, operations=ours, forms=("blocking",))
        series = Series(place, stage.rng, stage.alone, options)
        size = series.drawn.size
        if IS_OPEN_MPI and size not in _NEVER_WRITTEN_BEYOND:
            size = _NEVER_WRITTEN_BEYOND[0]
        series.drawn = replace(series.drawn, in_place=False, size=size)
        if series.algorithm == "native":
            series.algorithm = None
        odd = int(stage.rng.integers(1 << 20)) % place.ranks
        for turn in range(int(stage.rng.integers(3))):
            series.start(turn).end(0)
        stage.now[threading.get_ident()] = series
        place.everyone.Barrier()  # who fails early would end the calls before too
        _mismatched(stage, place, series, odd)


#: the buffers of calls that failed in the middle
_left_behind: list[list[Buffer]] = []


def _mismatched(stage: Stage, place: Place, series: Series, odd: int) -> None:
    mine = transfer(place.group, series.drawn, 3)
    position = place.comm.rank if place.group.is_one else place.group.me
    longer = position == odd and mine.send is not None
    if longer:
        assert mine.send is not None
        grown = [np.append(x, x[:1]) if len(x) else x for x in mine.send.blocks]
        longer = any(len(x) for x in grown)
        mine.send.blocks = grown
    args, buffers = series.arguments(mine)
    series.now = f"mismatched sizes, {series}, rank {odd} sends more"
    error = ""
    try:
        series.make("blocking", args, series.algorithm)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    faults = [] if error else [x.fault() for x in buffers]
    rows = place.everyone.allgather((longer, error, "".join(faults)))
    if any(x for x, _, _ in rows) and not any(x for _, x, _ in rows):
        wrong = [f"rank {i}: {x}" for i, (_, _, x) in enumerate(rows) if x]
        raise FaultError(f"{series.now}: no rank raises; {wrong or 'data are cut'}")
    # what was under way is left as it is: nobody can end it, and the MPI library may
    # still write where it was told to receive (Open MPI does, after MPI_ERR_TRUNCATE)
    _left_behind.append(buffers)


MODES: Mapping[str, Callable[[Stage], Any]] = {
    "calls": right_calls,
    "steady": steady,
    "devices": on_devices,
    "threads": threads,
    "groups": groups,
    "spawned": spawned,
    "checked": checked,
    "sizes": sizes,
    "broken": broken.broken_calls,
    "operators": operators.operators,
    "memory": bounds.memory,
    "speed": bounds.speed,
}
