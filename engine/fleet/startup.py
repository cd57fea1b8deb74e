"""Time from the order of an instance until it works: boot, image, weights, start of the program."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Assumption
from capacity_tui.engine.estimate import equation
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import GIGA


@equation(
    "startup = boot + image + engine + weights / bandwidth",
    unit="s",
    source="one after the other: the instance boots, the engine's image comes, weights are read, kernels compiled",
    units={"boot": "s", "image": "s", "engine": "s", "weights": "B", "bandwidth": "B"},
)
def startup_seconds(boot: Number, image: Number, engine: Number, weights: Number, bandwidth: Number) -> Number:
    """Seconds from the order of an instance until it works.

    Args:
        boot: seconds until the instance runs containers.
        image: seconds to fetch the program's image.
        engine: seconds in which the program compiles and captures.
        weights: bytes of the weights that it reads.
        bandwidth: bytes a second at which they are read, B/s.
    """
    return boot + image + engine + weights / bandwidth


@dataclass(frozen=True, slots=True)
class Startup:
    """How long it takes until an instance works.

    Attributes:
        seconds: from its order on.
        parts: the assumptions that it is the sum of, by name; none where it was said.
    """

    seconds: Interval
    parts: tuple[tuple[str, float], ...] = ()


def assumed_startup(weights: float, catalog: Catalog) -> Startup:
    """Return the time that is assumed until an instance works.

    Args:
        weights: bytes of the weights that it reads.
        catalog: what is assumed.
    """
    rows = catalog.assumptions
    boot, image, engine = (rows[name] for name in ("instance-boot", "image-pull", "engine-start"))
    disk = rows["weight-load-bandwidth"]
    parts = tuple((row.name, row.value) for row in (boot, image, engine))
    ends = [
        mean(startup_seconds(_end(boot, end), _end(image, end), _end(engine, end), weights, _end(disk, -end) * GIGA))
        for end in (0, -1, 1)
    ]
    return Startup(Interval(*ends), (*parts, ("reading of the weights", weights / (disk.value * GIGA))))


def _end(row: Assumption, end: int) -> float:
    """Return the value of an assumption, or its low or high end."""
    found = {0: row.value, -1: row.low, 1: row.high}[end]
    return row.value if found is None else found
