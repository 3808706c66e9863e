"""Random programs on isthmus, and everything that must hold while they run.

    python tests/fuzz --seconds 600 --ranks 5
    python tests/fuzz --seed 4711 --modes series --ranks 3 --level serialized

A defect hides where two things meet that no test combines: the sixteenth call after
one that a single rank had refused, a tuple where an array was, an exception in the
microsecond between two messages. So the fuzz draws all of it by chance: operations,
forms, algorithms, communicators, thread levels, sizes, every way to say a buffer, wrong
calls, errors at any line. What must come out is computed with numpy from the numbers of
the ranks alone.

An *episode* makes communicators of its own and frees them, and everything in it follows
from one number, its seed: all ranks draw the same from it, and each draws some things
alone. So one command repeats what failed. A *mode* is a kind of episode (`modes.py` has
the list). A *series* is one call of an episode made many times, each time with other
data at another place, as what is kept for calls is right the first time and wrong the
tenth.

    transfers.py    what each operation moves, and what must arrive
    spellings.py    every way to say a buffer, and memory to say it of
    places.py       communicators of two groups, of one, of several
    wrong.py        calls that must be refused
    series.py       one call, made many times, in all forms
    modes.py        kinds of episodes: right calls, wrong ones, several threads, ...
    broken.py       an exception at any line of a call
    operators.py    operators in Python that raise
    bounds.py       memory and time that calls may take
    holdings.py     what a process holds after a tenth of the time, and in the end
    launch.py       processes with a limit of time, and the command
"""
