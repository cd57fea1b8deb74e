"""Facts about hardware, models, prices and settings, each with its source, date and confidence.

``load_catalog()`` gives every table; a table is a mapping of id to row, and ``table.find(name)`` also
understands aliases and other spellings. Names are loaded when they are first used: whoever reads a shipped file alone
need not wait for the classes of all rows.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity_tui.engine.catalog.catalog import Catalog as Catalog
    from capacity_tui.engine.catalog.loading import load_catalog as load_catalog
    from capacity_tui.engine.catalog.rows.architectures import Architecture as Architecture
    from capacity_tui.engine.catalog.rows.base import Row as Row
    from capacity_tui.engine.catalog.rows.devices import Accelerator as Accelerator
    from capacity_tui.engine.catalog.rows.devices import Fabric as Fabric
    from capacity_tui.engine.catalog.rows.devices import Instance as Instance
    from capacity_tui.engine.catalog.rows.devices import Link as Link
    from capacity_tui.engine.catalog.rows.devices import MeasuredLink as MeasuredLink
    from capacity_tui.engine.catalog.rows.devices import Processor as Processor
    from capacity_tui.engine.catalog.rows.devices import SpotMarket as SpotMarket
    from capacity_tui.engine.catalog.rows.modes import Mode as Mode
    from capacity_tui.engine.catalog.rows.modes import Recovery as Recovery
    from capacity_tui.engine.catalog.rows.modes import Reserve as Reserve
    from capacity_tui.engine.catalog.rows.modes import Watch as Watch
    from capacity_tui.engine.catalog.rows.numerics import Optimizer as Optimizer
    from capacity_tui.engine.catalog.rows.numerics import Precision as Precision
    from capacity_tui.engine.catalog.rows.numerics import Quantization as Quantization
    from capacity_tui.engine.catalog.rows.workloads import ModelSize as ModelSize
    from capacity_tui.engine.catalog.rows.workloads import Workload as Workload
    from capacity_tui.engine.catalog.rows.workloads import WorkloadSet as WorkloadSet
    from capacity_tui.engine.catalog.table import Table as Table

_HOMES = {
    name: home
    for home, names in {
        "catalog": "Catalog",
        "loading": "load_catalog",
        "rows.architectures": "Architecture",
        "rows.base": "Row",
        "rows.devices": "Accelerator Fabric Instance Link MeasuredLink Processor SpotMarket",
        "rows.modes": "Mode Recovery Reserve Watch",
        "rows.numerics": "Optimizer Precision Quantization",
        "rows.workloads": "ModelSize Workload WorkloadSet",
        "table": "Table",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__package__}.{_HOMES[name]}"), name)
