"""Lists of processors as the kernel writes them."""

from __future__ import annotations

MOST_CPUS = 1 << 16  # Linux is built for 8192 at most; a longer list is damaged


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Return the numbers in a kernel list such as ``0-3,8``; raises ValueError, also for a list without bounds."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first:
            listed = range(int(first), int(last or first) + 1)
            if len(numbers) + len(listed) > MOST_CPUS:
                raise ValueError(f"more than {MOST_CPUS} CPUs listed")
            numbers.extend(listed)
    return tuple(numbers)
