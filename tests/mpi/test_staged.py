"""Arrays on a device, in every operation and form: a stand-in device has protected
memory, so a direct access ends the launch."""

from __future__ import annotations

from functools import partial
from random import Random

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
import redistributions
import standin
from between import OPERATIONS, ROOTED, Kit, call, names, refuses
from groups import pair
from isthmus.choose.tried import TrialTimes
from isthmus.mpi.buffers import on_devices
from isthmus.mpi.buffers.devices import arrays as device, overlap, staged
from isthmus.mpi.buffers.devices.transfer import MOST_COPIES_AHEAD, Transfer
from isthmus.mpi.comm.native import stages_messages
from isthmus.mpi.context import context, inter as context_inter
from isthmus.mpi.context.context import context_of
from isthmus.mpi.context.inter import InterContext
from isthmus.mpi.costs import trial
from isthmus.mpi.plan.plan import Plan
from isthmus.mpi.plan.steps import (
    RECV,
    SEND,
    TMP,
    Await,
    Fetched,
    ShortCopy,
    StartReceive,
    StartSend,
    Store,
    Stored,
)
from sampling import LONG, some
from standin import KIND, REAL, STREAM, DeviceArray, StandIn, Swapped, on_device
from support import (
    FORMS,
    HAS_SOUND_PERSISTENT,
    TURN,
    agree,
    has_persistent_collectives,
    largest_handle,
)

pytestmark = pytest.mark.mpi(3)
#: it completes a persistent Scatter once only, and to try it again would hang
SCATTERS_ONCE = ("MPICH",) < MPI.get_vendor() < ("MPICH", (4, 1, 0))
#: for what looks into the stand-in
stands_in = pytest.mark.skipif(REAL, reason="looks into the stand-in device")


@stands_in
def test_pinned_memory_that_is_too_much_is_given_back(comm, monkeypatch):
    """The memory that was used least recently, and all of that."""

    class Pinning:
        def __init__(self):
            self.pinned = {}

        def pin(self, nbytes):
            memory = np.empty(nbytes, "u1")
            self.pinned[memory.ctypes.data] = memory
            return memory.ctypes.data

        def unpin(self, address):
            del self.pinned[address]

    size = staged.PINNED_MULTIPLE_BYTES
    monkeypatch.setattr(staged, "MOST_IDLE_PINNED_BYTES", 2 * size)
    on = Pinning()
    pool = staged.Pool(on)
    rooms = [pool.room(size) for _ in range(4)]
    addresses = [room.ctypes.data for room in rooms]
    while rooms:
        rooms.pop(0)
    assert [*on.pinned] == addresses[2:]
    assert pool.room(size).ctypes.data == addresses[3]
    assert len(pool.room(3 * size - 5)) == 3 * size - 5
    agree(comm, True)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    """The device in place of a GPU; or a GPU."""
    if REAL:
        yield staged.device_of(KIND, 0)
        return
    monkeypatch.setitem(staged.KINDS, KIND, StandIn)
    staged.device_of.cache_clear()
    yield staged.device_of(KIND, 0)
    staged.device_of.cache_clear()


@pytest.fixture
def in_pieces(monkeypatch):
    """Short messages are cut and copied as long ones are."""
    monkeypatch.setattr(overlap, "PIECE_BYTES", 1024)
    monkeypatch.setattr(overlap, "LEAST_FETCHED_BYTES", 512)
    monkeypatch.setattr(overlap, "MOST_POSTED_RECEIVES", 1)
    monkeypatch.setattr(context, "DEVICE_PIECE_BYTES", 1536)
    monkeypatch.setattr(on_devices, "present", lambda: True)


def run(comm, op, form, args, starts=2, **named):
    """Make a call in a form."""
    if form == "blocking":
        getattr(comm, op)(*args, **named)
    elif form == "nonblocking":
        getattr(comm, "I" + op.lower())(*args, **named).Wait()
    else:
        request = getattr(comm, op + "_init")(*args, **named)
        for _ in range(starts):
            request.Start()
            request.Wait()
        request.Free()


#: on which ranks and in which arguments arrays are on the device
WHICH = [
    lambda rank: (True, True),
    lambda rank: (rank != 1, rank != 1),
    lambda rank: (rank == 1, rank != 1),
]


def _between(comm, op, algorithms, kinds=("some", "zeros", "empty"), forms=FORMS):
    faults = []
    for p in (1, 2) if LONG else (1 + (len(op) + TURN) % 2,):
        groups = pair(comm, p)
        for k, name in enumerate(algorithms):
            if op == "Reduce_scatter_block" and name == "native":
                continue  # mpi4py compares with the wrong group's size
            for form in forms:
                is_sound = form != "persistent" or HAS_SOUND_PERSISTENT
                if name == "native" and (not is_sound or refuses(groups, op, form)):
                    continue
                kind, root = kinds[k % len(kinds)], k % 3 if op in ROOTED else 0
                for turn in range(2):  # others of the same values: by the plan kept
                    case = call(Kit(groups, turn=turn), op, kind, root)
                    made = Swapped(case.args, WHICH[(k + turn) % 3](comm.rank))
                    run(groups.ours, op, form, made.args, algorithm=name)
                    made.back()
                    if case.fault:
                        faults.append(f"{p} {name} {form} {kind} {turn}: {case.fault}")
        groups.free()
    agree(comm, not faults, f"{len(faults)}: {faults[:1]}")


@pytest.mark.parametrize("op", [x for x in OPERATIONS if x != "Barrier"])
def test_between_groups(comm, op):
    _between(comm, op, ["auto", *some(names(op)[1:], 3, TURN), "native"])


@pytest.mark.parametrize("op", [x for x in OPERATIONS if x != "Barrier"])
def test_piece_by_piece(comm, in_pieces, op):
    algorithms = some(names(op), 1 if LONG else 3, 1 - TURN)
    _between(comm, op, algorithms, ["giant", "long"], FORMS if LONG else FORMS[::2])


# -- inside a group


def _inside(rank, n):
    """The arguments of each operation inside a group of n, and those of others."""
    one, many = np.arange(4.0) + rank, np.arange(4.0 * n) + 10 * rank
    counts = [i + 1 for i in range(n)]
    mine, every = np.arange(rank + 1.0) + rank, np.arange(float(sum(counts))) + rank
    room = np.zeros
    whole = [room(sum(counts)), counts]
    return {
        "Bcast": (one, 1),
        "Gather": (one, room(4 * n), 1),
        "Scatter": (many, room(4), 1),
        "Allgather": (one, room(4 * n)),
        "Allgatherv": (mine, whole),
        "Alltoall": (many, room(4 * n)),
        "Alltoallv": ([many, [4] * n], [room(4 * n), [4] * n]),
        "Gatherv": (mine, whole, 1),
        "Scatterv": ([every, counts], room(rank + 1), 1),
        "Reduce": (one, room(4), MPI.SUM, 1),
        "Allreduce": (one, room(4), MPI.SUM),
        "Reduce_scatter": (every, room(rank + 1), counts, MPI.SUM),
        "Reduce_scatter_block": (many, room(4), MPI.SUM),
        "Scan": (one, room(4), MPI.SUM),
        "Exscan": (one, room(4), MPI.SUM),
    }


def test_inside_a_group(comm):
    """As mpi4py does it with host arrays; what a rank does not receive stays."""
    ours, faults = isthmus.Intracomm(comm.Dup()), []
    forms = FORMS if has_persistent_collectives() else FORMS[:2]
    for k, op in enumerate(_inside(comm.rank, comm.size)):
        for form in forms:
            starts = 1 if op == "Scatter" and SCATTERS_ONCE else 2
            wanted = _inside(comm.rank, comm.size)[op]
            run(comm, op, form, wanted, starts)
            args = _inside(comm.rank, comm.size)[op]
            made = Swapped(args, WHICH[k % 3](comm.rank))
            run(ours, op, form, made.args, starts)
            made.back()
            for x, y in zip(args[:2], wanted[:2], strict=True):
                x, y = on_devices.owner_of(x), on_devices.owner_of(y)
                if not np.array_equal(x, y):
                    faults.append(f"{op} {form}: {x} is not {y}")
    for name in ("auto", "ring", "library", "node_aware"):
        for form in FORMS[:1] if name == "library" else FORMS:
            whole = np.zeros(3 * comm.size)
            whole[3 * comm.rank :][:3] = comm.rank + 1
            made = Swapped((MPI.IN_PLACE, whole))
            run(ours, "Allgather", form, made.args, algorithm=name)
            made.back()
            if not np.array_equal(whole, np.repeat(np.arange(comm.size) + 1.0, 3)):
                faults.append(f"in place {name} {form}: {whole}")
    agree(comm, not faults, f"{len(faults)}: {faults[:2]}")
    ours.Free()


# -- what else can lie on a device


def test_gaps_between_elements_and_blocks_stay(comm):
    groups, faults = pair(comm, 1), []
    there = len(groups.there)
    column = MPI.DOUBLE.Create_vector(3, 1, 2).Create_resized(0, 48).Commit()
    for form in FORMS:
        send, recv = np.arange(6.0) + 10 * comm.rank, np.full(6 * there, -1.0)
        made = Swapped(([send, 1, column], [recv, 1, column]))
        run(groups.ours, "Allgather", form, made.args)
        made.back()
        wanted = np.full((there, 6), -1.0)
        for i, r in enumerate(groups.there):
            wanted[i, ::2] = (np.arange(6.0) + 10 * r)[::2]
        if not np.array_equal(recv, wanted.ravel()):
            faults.append(f"{form}: {recv}")
        recv = np.full(5 * there, -1.0)
        counts, displs = [2] * there, [5 * i + 1 for i in range(there)]
        made = Swapped((send[:2], [recv, counts, displs, MPI.DOUBLE]))
        run(groups.ours, "Allgatherv", form, made.args)
        made.back()
        wanted = np.full((there, 5), -1.0)
        for i, r in enumerate(groups.there):
            wanted[i, 1:3] = np.arange(2.0) + 10 * r
        if not np.array_equal(recv, wanted.ravel()):
            faults.append(f"{form} with places: {recv}")
    column.Free()
    agree(comm, not faults, str(faults))
    groups.free()


def test_one_array_may_be_sent_and_received_in_other_places(comm):
    groups = pair(comm, 1)
    there = len(groups.there)
    both = np.arange(2.0 + 2 * there) + 10 * comm.rank
    found = on_device(both)
    spec = [found, [2] * there, [2 + 2 * i for i in range(there)], MPI.DOUBLE]
    groups.ours.Allgatherv([found, 2, MPI.DOUBLE], spec)
    wanted = [both[:2], *(np.arange(2.0) + 10 * r for r in groups.there)]
    agree(comm, np.array_equal(found.get(), np.concatenate(wanted)), str(found.get()))
    groups.free()


def _raised(act, *args):
    try:
        act(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


class Fixed(DeviceArray):
    """An array that is read-only."""

    @property
    def __cuda_array_interface__(self):
        found = super().__cuda_array_interface__
        return {**found, "data": (found["data"][0], True)}


class Other:
    """An array on a device that nobody knows."""

    def __dlpack_device__(self):
        return 99, 0


def test_what_cannot_work_is_refused_before_anything_is_sent(comm, monkeypatch):
    groups = pair(comm, 1)
    there = len(groups.there)
    good, long = on_device(np.ones(8)), on_device(np.zeros(8 * there))
    odd = DeviceArray(long.memory, (4,), (16,), "f8")
    fixed = Fixed(long.memory, long.shape, long.strides, long.dtype)
    cases = [
        (odd, long, "not contiguous"),
        (good, fixed, "read-only"),
        (long[1:8], long, "overlap"),
        (Other(), long, "DLPack's 99"),
    ]
    wrong = []
    for send, recv, words in cases:
        for name in (None, "direct", "native"):
            call = partial(groups.ours.Allgather, algorithm=name)
            text = _raised(call, send, recv)
            wrong += [] if words in text else [f"{words}: {text}"]
    if not (REAL or on_devices.present()):
        monkeypatch.setitem(staged.KINDS, KIND, staged.Gpu)
        staged.device_of.cache_clear()
        text = _raised(groups.ours.Allgather, good, long)
        wrong += [] if "CUDA driver" in text else [text]
        monkeypatch.setitem(staged.KINDS, KIND, StandIn)
        staged.device_of.cache_clear()
    groups.ours.Allgather(good, long)
    wrong += [] if (long.get() == 1).all() else [str(long.get())]
    agree(comm, not wrong, str(wrong))
    groups.free()


@stands_in
@pytest.mark.skipif(not has_persistent_collectives(), reason="before MPI 4")
def test_without_threads_the_librarys_persistent_call_is_refused_alike(
    comm, monkeypatch
):
    """Nobody would copy arrays that lie on a device on some ranks only."""
    groups = pair(comm, 1)
    context = context_of(groups.ours, InterContext)
    monkeypatch.setattr(context, "threads", False)
    send, recv = np.ones(4), np.zeros(4)
    init = partial(groups.ours.Allreduce_init, algorithm="native")
    errors = [
        _raised(init, on_device(send) if comm.rank == device_rank else send, recv)
        for device_rank in range(comm.size)
    ]
    is_told = all("needs MPI_THREAD_MULTIPLE" in error for error in errors)
    agree(comm, is_told, str(errors))
    init(send, recv).Free()  # where no array is on a device
    groups.ours.Allreduce(send, recv)
    there = len(groups.there)
    agree(comm, (recv == there).all(), f"{recv} of {there}")
    groups.free()


@stands_in
@pytest.mark.skipif(not has_persistent_collectives(), reason="before MPI 4")
def test_the_librarys_persistent_request_is_freed_too(comm):
    """It would keep its communicator, and copies of the arrays."""
    largest_handles = []
    for _ in range(8):
        groups = pair(comm, 1)
        send, recv = on_device(np.ones(4)), on_device(np.zeros(4))
        for _ in range(2):
            init = groups.ours.Allreduce_init
            init(send, recv, algorithm="native").Free()
            groups.ours.Recv_init(recv, 0).Free()
        groups.free()
        largest_handles.append(largest_handle())
    growth = largest_handles[-1] - largest_handles[2]
    agree(comm, growth < 4, f"{largest_handles}")


@stands_in
@pytest.mark.skipif(not has_persistent_collectives(), reason="before MPI 4")
def test_gaps_on_one_device_are_kept_by_the_librarys_persistent_call(comm):
    """The call was set up with the arguments, so nothing of ours unpacks the data."""
    ours = isthmus.Intracomm(comm.Dup())
    n, step = 500, 1 + (comm.rank == 0)
    spaced = MPI.DOUBLE.Create_resized(0, 8 * step).Commit()
    send, recv = np.ones(n), np.full(n * comm.size * step, -1.0)
    recv = on_device(recv) if comm.rank == 0 else recv
    request = ours.Allgather_init(send, [recv, n, spaced], algorithm="library")
    for turn in range(3):
        send[:] = 10 * turn + comm.rank
        request.Start()
        request.Wait()
        content = recv.get() if comm.rank == 0 else recv
        wanted = np.repeat(10.0 * turn + np.arange(comm.size), n)
        agree(comm, (content[::step] == wanted).all(), f"{turn}: {content[:4]}")
        agree(comm, step == 1 or (content[1::2] == -1).all(), "a gap is written")
    request.Free()
    spaced.Free()
    ours.Free()


@stands_in
def test_copies_wait_for_the_producer(comm, stand_in):
    groups = pair(comm, 1)
    send, recv = on_device(np.ones(3)), on_device(np.zeros(3))
    groups.ours.Allreduce(send, recv)
    agree(comm, stand_in.after_streams == [STREAM], str(stand_in.after_streams))
    request = groups.ours.Allreduce_init(send, recv)
    send.set(np.full(3, 5.0))
    for _ in range(2):
        request.Start()
        request.Wait()
    request.Free()
    agree(
        comm, stand_in.after_streams == [STREAM, device.ALL_STREAMS, device.ALL_STREAMS]
    )
    agree(comm, recv.get()[0] == 5 * len(groups.there), str(recv.get()))
    groups.free()


@stands_in
def test_what_is_pinned_is_kept_and_bounded(comm, stand_in, monkeypatch):
    monkeypatch.setattr(staged, "MOST_IDLE_PINNED_BYTES", 1 << 16)
    groups = pair(comm, 1)
    for n in (10, 10, 10, 5000, 6000, 5000):
        for _ in range(3):
            send, recv = on_device(np.ones(n)), on_device(np.zeros(n))
            groups.ours.Allreduce(send, recv, algorithm="three_phase")
    plans = len(groups.ours._context().plans)
    pinned = sum(len(x) for x in stand_in.pinned.values())
    # one for each number of elements
    agree(comm, plans <= 3 and 0 < pinned <= 1 << 16, f"{plans} plans, {pinned} bytes")
    groups.free()


class Capsule:
    """An array on the device by DLPack, as those of torch look."""

    def __init__(self, array):
        self.array, self.stream = array, None

    def __dlpack_device__(self):
        return KIND, 0

    def __dlpack__(self, stream=None):
        self.stream = stream
        return self.array.__dlpack__()


@pytest.mark.skipif(
    not hasattr(np.ndarray, "__dlpack__"), reason="this numpy makes no DLPack capsules"
)
@stands_in
def test_any_strides_are_copied_in_any_pieces(comm, monkeypatch):
    """Rows at once, and nothing that lies between."""
    monkeypatch.setattr(StandIn, "protected", False)
    staged.device_of.cache_clear()
    on = staged.device_of(KIND, 0)
    whole = np.arange(4 * 6 * 5.0).reshape(4, 6, 5)
    parts = [np.s_[:], np.s_[:, ::2], np.s_[1:3, :, 1:4], np.s_[::2, 1], np.s_[:0]]
    for part in parts:
        for array in (whole[part], whole[part].T):
            found = staged.standing(Capsule(array))
            assert found.array.owner[1].stream == on.stream
            copies = staged.Copies([found], written=[True], read=[True], arrays={})
            begun = on.begun
            copies.fetch_all()
            assert np.array_equal(found.host, array)
            assert on.begun - begun <= (4 if array.ndim > 2 else 1)
            found.host[...] *= -1
            for low in range(0, found.nbytes, 56):
                copies.store([(0, low, min(low + 56, found.nbytes))])
            copies.wait(True)
            assert np.array_equal(found.host, array)
            array[...] *= -1
            assert np.array_equal(whole.ravel(), np.arange(whole.size))


# -- redistribution


@pytest.mark.parametrize("combine", [None, MPI.SUM, "mean"])
def test_redistribution(comm, in_pieces, combine):
    rng, faults = Random(4 + TURN), []
    groups = pair(comm, 2)
    sends = comm.rank < 2
    for k in range(40 if LONG else 8):
        case = redistributions.case(rng, 2, comm.size - 2)
        array = np.arange(np.prod(case.shape, dtype=int)).reshape(case.shape) * 1.0
        me = groups.local.rank
        layout = (case.sources if sends else case.targets)[me]
        right = redistributions.part(layout, me, array)
        if combine == MPI.SUM and not sends:
            times = redistributions.sources(case.sources)
            right = redistributions.part(layout, me, array * times)
        role = {"source": layout} if sends else {"target": layout}
        move = isthmus.Redistribution(groups.native, combine=combine, **role)
        mine = Random(k + comm.rank)
        for form in FORMS:
            data = right if sends else np.full(right.shape, -1.0)
            array = standin.field(mine, data) if (k + comm.rank) % 4 else data.copy()
            redistributions.moved(move, form, array)
            found = array if isinstance(array, np.ndarray) else array.get()
            if not np.array_equal(found, right):
                faults.append(f"{k} {form} {layout}: {found} is not {right}")
        move.Free()
    agree(comm, not faults, f"{len(faults)}: {faults[:1]}")
    groups.free()


class Failing:
    """An array that raises something when it is looked at."""

    def __init__(self, error):
        self.error = error

    def __dlpack_device__(self):
        raise self.error


def test_an_interrupt_while_a_field_is_looked_at_is_told_to_all(comm):
    groups = pair(comm, 2)
    layout = isthmus.Layout.blocks((6,), (2 if comm.rank < 2 else 1,))
    role = "source" if comm.rank < 2 else "target"
    move = isthmus.Redistribution(groups.native, **{role: layout})
    n = 3 if comm.rank < 2 else 6
    for error in (RuntimeError("x"), KeyboardInterrupt()):
        stops = comm.rank == 0 and isinstance(error, KeyboardInterrupt)
        field = Failing(error) if comm.rank == 0 else np.zeros(n)
        with pytest.raises(KeyboardInterrupt if stops else isthmus.MismatchError):
            move(field)
        agree(comm, True)
    groups.free()


def test_among_several_groups(comm):
    coupling = isthmus.couple(comm, comm.rank)
    others = [r for r in range(comm.size) if r != comm.rank]
    right = True
    for form in FORMS:
        send = on_device(np.full(4, comm.rank))
        recv = on_device(np.zeros((len(others), 4), int))
        run(coupling, "Allgather", form, (send, recv))
        right &= recv.get()[:, 0].tolist() == others
    agree(comm, right)
    coupling.Free()


# -- what is copied when


class FakeCopies:
    """Two arrays on a device of bytes, of which copies are done some looks later."""

    def __init__(self, random, sizes):
        self._random = random
        self.there = [bytearray(random.randbytes(n)) for n in sizes]
        self.here = [bytearray(n) for n in sizes]
        self.stored, self.under_way, self.most = [], 0, 0

    def begin(self):
        self.here = [bytearray(len(x)) for x in self.here]

    def fetch(self, k, start, stop):
        looks, done = self._random.randrange(3), False
        self.under_way += stop - start
        self.most = max(self.most, self.under_way)

        def is_complete():
            nonlocal looks, done
            looks -= 1
            if looks < 0 and not done:
                self.here[k][start:stop] = self.there[k][start:stop]
                self.under_way -= stop - start
                done = True
            return done

        return is_complete

    def store(self, ranges):
        for k, start, stop in ranges:
            self.stored += [(k, i) for i in range(start, stop)]
            self.there[k][start:stop] = self.here[k][start:stop]

    def wait(self, out):
        pass


def _random_copies(random, sizes):
    """Copies between two buffers that stand for arrays and one that does not."""
    rooms = {**sizes, TMP: 200}
    for _ in range(random.randrange(1, 30)):
        source, target = random.sample(sorted(rooms), 2)
        n = random.randrange(1, min(rooms[source], rooms[target]) + 1)
        read = random.randrange(rooms[source] - n + 1)
        written = random.randrange(rooms[target] - n + 1)
        yield ShortCopy(
            source, slice(read, read + n), target, slice(written, written + n)
        )


def _advance(step, rooms, transfer):
    """Do one step of a plan without messages."""
    if isinstance(step, ShortCopy):
        rooms[step.target][step.written] = rooms[step.source][step.read]
    elif isinstance(step, Fetched):
        while not transfer.has_come(step.number):
            pass
    elif isinstance(step, Store):
        transfer.store(step.ranges)
    else:
        assert isinstance(step, Stored) and transfer.has_stored()


def test_what_is_read_is_there_and_what_is_written_last_is_copied_once(monkeypatch):
    """A plan with copies leaves on the device what the plain one leaves on the host."""
    monkeypatch.setattr(overlap, "PIECE_BYTES", 16)
    monkeypatch.setattr(overlap, "LEAST_FETCHED_BYTES", 4)
    monkeypatch.setattr(overlap, "COPIES_OF_LONG_ARRAY", 10)
    for seed in range(200):
        random = Random(seed)
        sizes = {k: random.randrange(1, 200) for k in (SEND, RECV)}
        copies = FakeCopies(random, list(sizes.values()))
        steps = tuple(_random_copies(random, sizes))
        plan = overlap.overlapped(Plan((), "random", steps), sizes, list(sizes))
        for _ in range(2):  # a plan is for many calls
            copies.stored, copies.most = [], 0
            wanted = {k: bytearray(copies.there[k]) for k in sizes}
            rooms = {**wanted, TMP: bytearray(200)}
            for step in steps:
                _advance(step, rooms, None)
            transfer = Transfer(plan.transfers, copies, {k: k for k in sizes})
            rooms = {**dict(enumerate(copies.here)), TMP: bytearray(200)}
            for step in plan.steps:
                _advance(step, rooms, transfer)
            written = {
                (step.target, i)
                for step in steps
                if step.target in sizes
                for i in range(step.written.start, step.written.stop)
            }
            assert copies.there == list(wanted.values()), seed
            assert sorted(copies.stored) == sorted(written)
            assert copies.most <= (MOST_COPIES_AHEAD + 1) * max(2 * 200 // 10, 16)


def test_receives_of_a_round_are_posted_some_at_a_time():
    """Of each rank, in their order; and all messages leave before the first wait."""
    posts = [
        StartReceive(peer, RECV, 0, 60, 5 * k + i)
        for k, peer in enumerate((4, 7))
        for i in range(5)
    ]
    sends = [StartSend(peer, SEND, 0, 60, 10 + k) for k, peer in enumerate((4, 7))]
    slots = tuple(x.slot for x in (*posts, *sends))
    source = {x.slot: x.peer for x in posts}
    under_way, awaited, posted = {4: 0, 7: 0}, [], []
    for step in overlap.pipelined([*posts, *sends, Await(slots, 1)]):
        if isinstance(step, StartReceive):
            posted.append(step)
            under_way[step.peer] += 1
            assert under_way[step.peer] <= overlap.MOST_POSTED_RECEIVES
        elif isinstance(step, StartSend):
            assert not awaited
        else:
            assert isinstance(step, Await) and step.round_number == 1
            awaited += step.slots
            for slot in step.slots:
                if slot in source:
                    under_way[source[slot]] -= 1
    assert sorted(awaited) == sorted(slots) and set(posted) == {*posts}
    for peer in (4, 7):
        own = [x.slot for x in posted if x.peer == peer]
        assert own == sorted(own)


def ended(result):
    """The steps of a trial that has its result at once."""
    yield from ()
    return result


def test_long_calls_are_not_left_to_the_library(comm, in_pieces, monkeypatch):
    """Where there are devices: nothing could be copied beside its call."""
    seconds = {"flat": (2.0,), "node_aware": (3.0,), "native": (1.0,)}
    found = TrialTimes((8,), seconds, {})
    monkeypatch.setenv("ISTHMUS_TRIAL", "1")
    monkeypatch.setattr(context_inter, "WARM_UP_CALLS", 1)
    monkeypatch.setattr(trial, "trial", lambda c, collective: ended(found))
    groups = pair(comm, 1)
    there, taken = len(groups.there), []
    for n in (8, 8, 1024):  # behind the first call comes all of the trial
        send, recv = (np.ones(n * there) for _ in "xy")
        groups.ours.Alltoall(send, recv)
        taken.append(groups.ours._last_algorithm())
    agree(comm, taken[1] == "native" and taken[2] != "native", str(taken))
    groups.free()


# -- single messages


class Group(isthmus.Intracomm):
    """As communicators are where there is a GPU."""


class Inter(isthmus.Intercomm):
    """The same."""


def test_single_messages(comm):
    """Blocking ones and nonblocking sends, to and from host arrays too; what a shorter
    message does not write stays."""
    groups = pair(comm, 1)
    ours = stages_messages(Inter)(groups.native)
    there = len(groups.there)
    faults = []
    for k, name in enumerate(("Send", "Ssend", "Isend", "Issend")):
        for which in ((True, True), (True, False), (False, True)):
            wanted = np.arange(5.0) + 10 * k
            if comm.rank < groups.p:
                made = Swapped((wanted,), which)
                found = [getattr(ours, name)(made.args[0], i, k) for i in range(there)]
                for request in filter(None, found):
                    request.Wait()
                continue
            for i in range(there):
                into, status = np.full(8, -1.0), MPI.Status()
                made = Swapped((into,), which[1:])
                ours.Recv(made.args[0], i, k, status)
                made.back()
                right = np.array_equal(into, [*wanted, -1, -1, -1])
                if not right or status.Get_count(MPI.DOUBLE) != 5:
                    faults.append(f"{name} {which}: {into}")
    agree(comm, not faults, str(faults[:1]))
    groups.free()


def test_messages_inside_a_group(comm):
    ours = stages_messages(Group)(comm.Dup())
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    for which in ((True, True), (True, False), (False, True)):
        send, recv = np.arange(4.0) + comm.rank, np.zeros(4)
        made = Swapped((send, recv), which)
        ours.Sendrecv(made.args[0], right, 3, made.args[1], left, 3)
        made.back()
        agree(comm, np.array_equal(recv, np.arange(4.0) + left), f"{which}: {recv}")
    made = Swapped((send,))
    ours.Sendrecv_replace(*made.args, right, 0, left, 0)
    made.back()
    agree(comm, np.array_equal(send, np.arange(4.0) + left), str(send))
    wrong = []
    for name in ("Irecv", "Send_init", "Recv_init"):
        text = _raised(getattr(ours, name), on_device(send), 0)
        wrong += [] if f"ValueError: {name}: the buffer" in text else [text]
    plain = np.zeros(2)
    request = ours.Irecv(plain, left)
    ours.Send(np.full(2, float(comm.rank)), right)
    request.Wait()
    agree(comm, not wrong and (plain == left).all(), f"{wrong} {plain}")
    ours.Free()
