"""A split of 1000 processes in one: rounds, messages, bytes, memory."""

from isthmus.groups import vm
from isthmus.groups.chain import from_size
from isthmus.groups.split import split

n = 1000
run = vm.run(
    [split(from_size(r, n), n, f"node{r // 64}", algorithm="hash") for r in range(n)],
    memory=range(0, n, 100),
)
assert run.results[999].groups == 16
assert run.results[999].link.size == 1000 - 15 * 64
print(f"{run.rounds} rounds, {run.messages} messages of {run.bytes} bytes in all")
print(f"at most {run.peak / 1024:.1f} KiB of memory in one of the processes looked at")
