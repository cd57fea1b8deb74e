"""What a job costs on a partition: by a file of the user's, or as the plan's hardware is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from capacity_tui.engine.catalog import Document, nearest, read_yaml
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.files import config_folder
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.nodes.jobs.job_request import TRAIN_TIME, JobRequest
from capacity_tui.engine.observe.history import Ends
from capacity_tui.engine.units import HOUR_SECONDS

PRICES_FILE = "partitions.yaml"
_PER_NODE, _PER_DEVICE = "usd_per_node_hour", "usd_per_device_hour"


@dataclass(frozen=True)
class PartitionCost:
    """Money for a job on a partition.

    Attributes:
        usd_per_hour: of all its nodes; None where nobody says.
        usd: of the whole job, with its range; empty where price or length are open.
        source: who says so, or why there is no figure.
    """

    usd_per_hour: float | None
    usd: Ends
    source: str


Prices = Mapping[str, Mapping[str, float]]


def read_prices(file: Path | None = None) -> tuple[Prices, str]:
    """Return prices by partition and the name of their file; nothing where the user keeps none.

    Args:
        file: of prices; the one in the user's configuration by default.

    Raises:
        CapacityError: it cannot be read, or is no file of prices.
    """
    path = file or config_folder() / PRICES_FILE
    if file is None and not path.exists():
        return {}, ""
    document = read_yaml(path)
    if not isinstance(document.data, Mapping):
        raise CatalogError("no table of prices", hint=f"write partition: {{{_PER_NODE}: 25}}", place=document.place())
    return {str(name): _price(str(name), value, document) for name, value in document.data.items()}, path.name


def cost_on(partition: str, request: JobRequest, prices: Prices, file: str) -> PartitionCost:
    """Return what a job costs on a partition.

    Args:
        request: what the job asks for, with what is predicted of it.
    """
    price = prices.get(partition)
    if price is not None:
        hourly = price.get(_PER_NODE, 0.0) * request.nodes + price.get(_PER_DEVICE, 0.0) * request.devices
        ends = request.predicted.get(TRAIN_TIME, {})
        return PartitionCost(hourly, {name: hourly * value / HOUR_SECONDS for name, value in ends.items()}, file)
    if request.has_price and Figure.COST_USD in request.predicted and not prices:
        of_plan = request.predicted.get(Figure.COST_USD_PER_HOUR, {}).get("value")
        return PartitionCost(
            of_plan, request.predicted[Figure.COST_USD], "as the plan says, the same on every partition"
        )
    nobody = f"n/a (no prices: --prices FILE, {PRICES_FILE} in the configuration, or pricing.usd_per_hour in the plan)"
    return PartitionCost(None, {}, f"n/a ({file} has no price of {partition})" if prices else nobody)


def _price(name: str, value: object, document: Document) -> dict[str, float]:
    location = document.place(name)
    known = (_PER_NODE, _PER_DEVICE)
    table = {_PER_NODE: value} if isinstance(value, int | float) else value
    if not isinstance(table, Mapping) or not table:
        raise CatalogError(f"no price: {value!r:.60}", hint=f"write {_PER_NODE} or {_PER_DEVICE}", place=location)
    for key, number in table.items():
        if key not in known:
            near = nearest(str(key), known)
            raise CatalogError(f"unknown key {key!r:.60}", hint=f"did you mean {(near or known)[0]}?", place=location)
        if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
            raise CatalogError(
                f"{key} is {number!r:.60}", hint="a price is a number of dollars, 0 or more", place=location
            )
    return {str(key): float(number) for key, number in table.items()}
