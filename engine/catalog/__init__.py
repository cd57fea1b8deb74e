"""Facts about hardware, models, prices and settings, each with its source, date and confidence.

``load_catalog()`` gives every table; a table is a mapping of id to row, and ``table.find(name)`` also
understands aliases and other spellings.
"""

from capacity_tui.engine.catalog.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.rows.architectures import Architecture
from capacity_tui.engine.catalog.rows.base import Row
from capacity_tui.engine.catalog.rows.devices import (
    Accelerator,
    Fabric,
    Instance,
    Link,
    MeasuredLink,
    Processor,
    SpotMarket,
)
from capacity_tui.engine.catalog.rows.modes import Mode, Recovery, Reserve, Watch
from capacity_tui.engine.catalog.rows.numerics import Optimizer, Precision, Quantization
from capacity_tui.engine.catalog.table import Table

__all__ = [
    "Accelerator",
    "Architecture",
    "Catalog",
    "Fabric",
    "Instance",
    "Link",
    "MeasuredLink",
    "Mode",
    "Optimizer",
    "Precision",
    "Processor",
    "Quantization",
    "Recovery",
    "Reserve",
    "Row",
    "SpotMarket",
    "Table",
    "Watch",
    "load_catalog",
]
