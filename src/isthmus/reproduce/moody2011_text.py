"""The words of the report on Moody, Ahn, de Supinski 2011; numbers are put in."""

TEXT = """# Moody, Ahn, de Supinski 2011, simulated

Made by `isthmus reproduce moody2011` from the algorithms of `isthmus.split`. The paper
is that of Adam Moody, Dong H. Ahn and Bronis R. de Supinski: *Exascale Algorithms for
Generalized MPI_Comm_split*, EuroMPI 2011. What the algorithms do, with pictures:
[Forming groups](../groups.md).

They run here in lanes, an array element for every process. The functions are those
that MPI runs. Tests compare both ways: the same results, rounds, messages, bytes and
times, process by process, for all numbers of processes up to 70 and some up to 1000,
and the totals of these figures for 2048. Where every process would need a table of all
others, only the bytes of its messages are counted and its entries exist once.

## What is assumed

The paper tells ratios, but **no times, no keys, no numbers of groups and no number of
bins**; what follows is compared with its text alone. Assumed are:

- **The machine**, `dawn-like`: {alpha} to start a message and {rate} for its bytes,
  between any two processes. Two messages of one process start one after the other.
  Links are not shared, and nodes do not exist.
- **Local work**: {entry} to compare and move an entry of a table. A serial sort does
  this N log N times, a merge once for every entry, a scan of bins once for every entry
  it sends.
- **Keys**: random, of 32 bits. **Groups**: {few} are few and N/2 are many; every
  process draws its colour at random. **Bins**: {bins}.
- Bytes are those of our own encoding: eight for a number or an address, and the length
  before every colour.

Nothing of this was measured: the start-up time and the time of an entry are guesses,
and absolute times are worth no more than they are. How much each ratio hangs on them
is in its table.

## Time against processes

![Figure 3](figure3.png)
Figure 3: reordering without a split.

![Figure 4](figure4.png)
Figure 4: a split without reordering. Solid: 5 characters, dashed: 80.

![Figure 5](figure5.png)
Figure 5: a split with reordering. The steps of Hash64 are where groups become longer
than 64 processes.

The numbers are in [points.csv](points.csv). Of all points with {big} processes
{slowest_name} took longest to simulate: {slowest} of one core.

## The paper's ratios

How many times slower the first is than the second; "serial sorts" and "Cheng" are the
fastest of theirs. "Agrees" is within a quarter of the paper's number. The last columns
show what a ratio hangs on: with half and twice the start-up time, and without local
work.

{ratios}

## The paper's words

{claims}

## What agrees

- **Bitonic is a hundred times faster than a serial sort.** But the number itself is
  worth little. Messages take {serial_messages} of the serial sort and sorting takes
  {serial_work}; Bitonic takes {bitonic_ms} in all. So the ratio follows from {entry} an
  entry ({entry_100} would give 100) and from the start-up time. What does not hang on
  them: with a serial sort every process receives and sorts a table of {table}, and
  Bitonic takes {bitonic_rounds} rounds of short messages.
- **Hash and Hash64 split a few groups 1.7 to 2.1 times as fast as Bitonic.** With
  {bins} bins Hash needs {few_16_rounds} rounds instead of {bitonic_rounds}; its rounds
  are dearer, as it sends two messages in each, so the ratio is {few_16} and not
  {rounds_16}. It hardly hangs on the start-up time.
- **They are slower than Bitonic if a few large groups are reordered too**, since what
  is left to sort is nearly as long as before.
- **Serial sorts are best for few processes**, and figures 4 and 5 are alike for many
  groups.

## What differs, and why

- **Radix.** Ours is about as fast as Bitonic, the paper's was 5.5 and 3.0 times slower.
  Ours ends where a chain has one process, leaves out leading bits that all share, and
  sends no empty bins: {radix_rounds} rounds for 32 bits. One that goes through all bits
  with full tables, {patient_rounds} rounds, would be {patient_small} and {patient_big}
  times slower (counted, not run). That is more than the paper's, but it falls by the
  same factor: {patient_fall} here, {paper_fall} there. This may be what the paper's
  Radix did; it does not say. With it Radix also grows least, {patient_growth} times
  from 16 to {big} processes, against {bitonic_growth} times for Bitonic. Keys of
  {short_bits} bits make little difference ({radix_short} times Bitonic): below, chains
  have one process anyway.
- **Cheng.** {cheng} is our best, in {cheng_rounds} rounds: messages take
  {cheng_messages} and local work {cheng_work}. Every sorter sends to every other in
  each search for splitters, one start-up after the other. A machine that sends on
  several links at once, or the library's own alltoall, needs less. The
  paper's number could be reached by that, or by longer start-ups of all messages,
  which weigh more on Bitonic.
- **Many groups.** The paper finds Hash on par with Bitonic, we find it faster
  ({many_16} times). The number of bins decides: with {few_bins} bins, as in the paper's
  own example, it is {many_4}, on par. But then the gain with {few} groups is gone
  ({few_4}). It hangs on the numbers of bins and groups, and the paper gives neither.
  Hash64 gains more with us: a table of 64 entries is cheap
  at {alpha} a message and {entry} an entry.
- **The length of colours** matters less than in the paper, where the gain goes from
  1.7 to 2.1 with it. {more_bytes} bytes more are {more_time} at {rate}. Copies and
  comparisons of strings by a slow core are not in the model.

## Rounds, messages and bytes

![Counts](counts.png)
Rounds and what processes send, against processes.

With {big} processes:

{counts}

## Memory

The most bytes that a process held at a time, in runs of the dialogues in which both
ends of the chain and three others are weighed.

![Memory](memory.png)

{memory}

With {big} processes a table of all has {table} on every process. Bitonic grows with the
logarithm. Hash and Radix have tables of {bins} bins, and grow until these are full; a
test shows that then they grow no more. Hash64 gathers tables of up to 64 processes.

## A million processes

1 048 576 of them, which the paper's abstract speaks of and its figures do not reach.
Each had a process of its own; simulated in so many seconds of one core, with so much
memory at most.

{million}

## Not made anew

- **Sierra**, where curves converge "at higher process counts, at which we conject that
  network contention limits performance". There is no contention in this model.
- **The peak of Hash64 in figure 5(b)** at 512 and 1024 processes. It came from a bug
  that gathered long chains into tables; a test shows that ours does not.
"""
