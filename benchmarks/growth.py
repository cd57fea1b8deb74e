"""How often planted laws of growth are found and decided, how often wrongly, and how often ranges hold.

    uv run python -m benchmarks.growth [--seeds 40]

Sizes are those that ``scaling run`` measures by default, three runs each, or six sizes of one run; values are a law's
with log-normal noise. *Held* is the share of ranges at 100 M samples that hold the planted value: 80 % are meant.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from capacity_tui.engine.growth import fit_growth

PLANTED: dict[str, tuple[str, Callable[[float], float]]] = {
    "O(1)": ("O(1)", lambda _: 2.0),
    "O(log n)": ("O(log n)", lambda n: 0.5 + 0.3 * math.log(n)),
    "O(n)": ("O(n)", lambda n: 0.05 + 2e-4 * n),
    "O(n log n)": ("O(n log n)", lambda n: 0.05 + 2e-5 * n * math.log(n)),
    "O(n^2)": ("O(n^2)", lambda n: 0.05 + 1e-8 * n**2),
    "O(n^3)": ("O(n^3)", lambda n: 0.05 + 1e-12 * n**3),
    "n^0.6": ("power law", lambda n: 0.05 + 1e-3 * n**0.6),
    "n^1.5": ("power law", lambda n: 0.05 + 1e-4 * n**1.5),
}
SERIES: dict[str, tuple[Sequence[int], int]] = {
    "4 sizes x 3": ((100, 1000, 10_000, 50_000), 3),
    "6 sizes x 1": ((100, 300, 1000, 3000, 10_000, 30_000), 1),
    "short: 100 to 1 000 x 3": ((100, 200, 400, 1000), 3),
}
NOISES = (0.02, 0.05, 0.1)
FAR = 1e8


def measure(law: str, sizes: Sequence[int], repeats: int, noise: float, seeds: int) -> str:
    """Return a row of the table."""
    name, value = PLANTED[law]
    found = decided = wrong = held = 0
    widths = []
    for seed in range(seeds):
        draw = np.random.default_rng(seed)
        points = [(n, value(n) * math.exp(draw.normal(0, noise))) for n in sizes for _ in range(repeats)]
        fit = fit_growth("seconds", points, (FAR,))
        chosen = fit.choice.chosen
        assert chosen is not None
        right = chosen.fitted.law.name == name
        found += right
        decided += right and fit.choice.decided
        wrong += fit.choice.decided and not right
        (far,) = fit.extrapolated
        held += far.low <= value(FAR) <= far.high
        widths.append(far.high / far.low)
    shares = " | ".join(f"{100 * count / seeds:.0f}%" for count in (found, decided, wrong, held))
    return f"| {law} | {100 * noise:.0f}% | {shares} | x{median(widths):.3g} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    seeds = parser.parse_args().seeds
    for name, (sizes, repeats) in SERIES.items():
        print(f"\n{name}\n\n| planted | noise | found | decided | decided wrongly | held | width (median) |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for law in PLANTED:
            for noise in NOISES:
                print(measure(law, sizes, repeats, noise, seeds), flush=True)


if __name__ == "__main__":
    main()
