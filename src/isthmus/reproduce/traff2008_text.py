"""The words of the report on Träff et al. 2008; the numbers are put in their places."""

TEXT = """# Träff et al. 2008, simulated

Made by `isthmus reproduce traff2008` from the algorithms' own definitions: the
schedules that are verified and that run on MPI, with times from a machine model. The
slides are those of Jesper Larsson Träff, Andreas Ripke, Christian Siebert, Pavan
Balaji, Rajeev Thakur and William Gropp: *A simple, pipelined all-gather algorithm for
large irregular problems*, EuroPVM/MPI 2008. What the algorithm is and why it works:
[Unequal blocks](../irregular.md).

## What is assumed

The slides say how many processes they used and which fixed block size B. **They give
no start-up times, no bandwidths and no numbers on the axes**: those below are typical
values of such machines, chosen by us, and absolute times are worth no more than they
are. They are in the machine files that come with isthmus.

{assumptions}

Every process has its own port, every pair is connected, and a message of n bytes
takes α + nβ. The distributions are our reading of their names, in
`isthmus.distributions`. Total sizes m are multiples of p, so that `regular` is quite
regular. "Best B" is what `blocked_ring` takes when it is told α/β.

## Time against total size

![SX-8](figure1.png)
Figure 1: NEC SX-8, 30 processes.

![Linux cluster](figure2.png)
Figure 2: Linux cluster, 96 processes.

![Blue Gene/P](figure3.png)
Figure 3: Blue Gene/P, 4096 processes. In a circulant schedule a message may have a
part of each of 4096 blocks, and a round has 4096 messages: some 16 million pieces a
round are too many to simulate here. The dotted line is a bound of its time that holds
for every distribution: (n − 1 + 12)(α + β(m/n + p)).

The numbers are in [points.csv](points.csv).

## Multiples of the limit

Times at the largest m of each figure, and of SiCortex at the one m that was simulated,
divided by βm. "Gain" is how many times faster
than the linear ring. Below 1 is possible: a process need not receive what it has.

{multiples}

## Nodes with one port

The same α and β, but messages leave and enter a node through one port that its
processes share: 8 to a node on the SX-8, where the slides have 30 × 8 processes too; 4
on the Linux cluster, whose 96 processes we take to be those of its 24 nodes, and 2
where the slides have 16 × 2.

{nodes}

![SX-8, 30 × 8](figure7.png)
Figure 7: NEC SX-8, 30 nodes with 8 processes each.

![Linux, 16 × 2](figure8.png)
Figure 8: Linux cluster, 16 nodes with 2 processes each.

The rings do not notice: of a node's processes one sends out and one receives, in all
rounds. A circulant schedule sends nearly every message to another node, and they
queue. So for processes that share a port the blocked ring is still the better one.

## The effect of the block size

![Block sizes](figure4.png)
Figure 4: time against B on the Linux cluster, and what the rules choose. Rule 1 is
the smallest block, but no less than α/β bytes; it says nothing where a block is
empty. Rule 2 is the fixed size. Rule 3 is √(2αm / (β(p + z − 2))) with z empty
blocks. "Best" is what isthmus takes. The curves are cut off at 10; they end where B is
the largest block, and there it is the linear ring.

Time as a multiple of βm, and the size:

{rules}

The numbers are in [sizes.csv](sizes.csv).

## The number of processes

![Time over p](figure9.png)
Figure 9: the Linux cluster with more and more processes and the same m. Where one
process has nearly all, the linear ring's time grows with p; the blocked ring's hardly
does.

## Load balance

The slides show this for 96 processes; for which distribution is lost. Yellow is idle,
blue communicates, darker blue in both directions at once. Where messages are too
short to be seen, the colours mix in proportion.

![Load balance, linear](figure5.png)
Figure 5: linear distribution, the fixed B. On the left, stripes of yellow wait for the
large blocks of the first processes, which travel down the diagonal; the yellow area is
processes that are done while others still pass these blocks on.

![Load balance, spike](figure6.png)
Figure 6: spike distribution. On the left the one large block goes from process to
process, and all others wait; on the right it is a pipeline.

## A machine of today

1024 processes, 16 MiB, α = 2 µs, 12 GB/s.

{today}
{verdict}

## "Comparable running times"

The time of the slowest distribution divided by that of `regular`, at the same m:

{spread}

## What agrees

- **"For regular problems algorithm identical to linear ring."** With rule 1, and with
  the best B: the same messages in the same rounds. With a fixed B only while blocks
  are no longer than B; longer ones are cut, which only adds start-ups.
- **"Comparable running times."** By the linear ring the slowest distribution takes up
  to p − 1 times as long as the regular one; by the blocked ring with the best B, 1.2
  times in figures 1 and 2, and 1.4 to 2 times with more processes: see below.
- **"Similar to pipelined broadcast for extreme distributions."** With everything at
  one process the blocked ring takes ⌈m/B⌉ + p − 2 rounds, which is a pipeline along a
  chain of p processes, no more and no less.
- **"Much better than O((p − 1) max m_i)."** The gains above. For large m they come
  close to the largest block over the average one, which is p at the most.
- **The fixed B of the Linux cluster**, 32 KiB, is close to what rule 3 gives for our
  assumed machine and 12 MiB. That may be chance.

## What differs, and why

- **A fixed B fits one m.** The start-ups of B = 32 KiB cost equal blocks of 512 KiB a
  sixth. B = 64 KiB is far too long for 4096 processes and m = 64 MiB: a piece makes
  4095 hops of 178 µs, 0.73 s, four times βm, before all have seen it. The slides have
  no numbers on their axes; their m may have been much larger, or their start-up.
- **The pipeline is as long as the ring.** With everything at one process the best B
  leaves βm (1 + 2√x + x) with x = pα/(βm). To be within a fifth of the limit m must be
  about a hundred times pα/β bytes: 120 MB for the 30 processes of figure 1, but 460 MB
  for the 4096 of figure 3.
- **Rule 1 has its traps.** One small block makes B small for all (linear in figure 4:
  α/β bytes, and half the time is start-ups), and if no block is small B is too large
  (spike): it looks at one block, not at m. And if p does not divide m, equal blocks
  differ by one, B is the smaller, and nearly every block is cut in two. Taking the
  larger of nearly equal counts avoids it.
- **"Linear model not accurate enough!"** Nothing here can say so: the simulated
  machine is the linear model. That "best" is best in figure 4 is therefore no
  surprise, and says nothing about a real network.
- **Circulant schedules** were found later. They need no long pipeline and are the
  best of all wherever every process has its own port, but lose by far where ports are
  shared.

## Errata of the slides

- Rule 3 prints the number of rounds as m/B + (p − z)/2. The block size given beside
  it is right, but follows from m/B + (p + z − 2)/2: a process without data adds a
  round, it does not save one.
- The linear ring is said to run for k = 0, …, p − 1. Those are p rounds, one too many.
- The analysis writes floor(B_i/B) and ceil(B_i/B) for what is floor(m_i/B) and
  ceil(m_i/B).
- "b − 1 rounds": the last of them bring nothing. It is b − min b_i, since no process
  receives a piece that it has.

## Not made anew

The curves of SiCortex: of its 5784 processes there is a table. The figures of 16 × 2
processes without a block size. Nothing here was measured on any of these machines.
"""
