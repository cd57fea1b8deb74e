"""The constants of the physics that a fit may move, with what is known of them before any run is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from capacity_tui.engine.catalog import Catalog, Table, read_yaml
from capacity_tui.engine.catalog.rows import Row
from capacity_tui.engine.numeric import Number

Fits: TypeAlias = Literal["time", "memory", "speed", "latency"]
TableName: TypeAlias = Literal[
    "efficiency", "frameworks", "coefficients", "engines", "weight_kernels", "algorithms", "attention_kernels"
]
FOLDER = Path(__file__).parent / "constants"
# Attribute of the catalogue that holds each file of profiles/.
TABLES = {
    "efficiency": "efficiencies",
    "frameworks": "frameworks",
    "coefficients": "coefficients",
    "engines": "engines",
    "weight_kernels": "weight_kernels",
    "algorithms": "algorithms",
    "attention_kernels": "attention_kernels",
}


class Constant(BaseModel):
    """One constant, shared by the catalogue rows it names."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str
    fits: Fits = Field(description="what it is fitted to")
    table: TableName = Field(description="file that holds it")
    rows: tuple[str, ...] = Field(min_length=1, description="rows that share the value")
    field: str = Field("value", description="field of these rows; gemm.bf16 names an entry, saved_norm.0 a place")
    prior: PositiveFloat = Field(description="value that operator timings or the method itself give")
    spread: PositiveFloat = Field(description="standard deviation of its logarithm around the prior")
    low: float = Field(0.01, description="smallest sensible value")
    high: float = Field(1000.0, description="largest sensible value")
    hidden: bool = Field(default=False, description="a share hidden: the fit moves what is left to 1")

    def distance(self, value: float) -> float:
        """Return how far a value is from the prior, as a logarithm (of what is left to 1, for shares hidden)."""
        if self.hidden:
            return float(np.log((1.0 - value) / (1.0 - self.prior)))
        return float(np.log(value / self.prior))

    def value(self, distance: Number) -> Number:
        """Return the value at a distance from the prior, inside its limits."""
        moved = np.exp(distance)
        value = 1.0 - (1.0 - self.prior) * moved if self.hidden else self.prior * moved
        return np.clip(value, self.low, self.high)

    def shipped(self, catalog: Catalog) -> float:
        """Return what the catalogue holds (in the first of its rows)."""
        name, _, key = self.field.partition(".")
        found = getattr(table_of(catalog, self.table)[self.rows[0]], name)
        if isinstance(found, tuple):
            return float(found[int(key)])
        return float(found[key] if key else found)


class _Shared(BaseModel):
    """A field that every row of a table has a constant of its own for."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    fits: Fits
    table: TableName = "engines"
    prior: PositiveFloat
    spread: PositiveFloat
    priors: Mapping[str, PositiveFloat] = Field({}, description="of rows that are known to differ")
    low: float = 0.01
    high: float = 20000.0


def training_constants(fits: Fits) -> tuple[Constant, ...]:
    """Return the constants fitted to ``time`` or ``memory`` of training, as ``constants/training.yaml`` has them."""
    rows = [Constant.model_validate({"id": name, **row}) for name, row in _blocks("training")]
    return tuple(row for row in rows if row.fits == fits)


def network_constants() -> tuple[Constant, ...]:
    """Return the constants of networks of layers, as ``constants/networks.yaml`` has them."""
    return tuple(Constant.model_validate({"id": name, **row}) for name, row in _blocks("networks"))


def unnamed_constants(fits: Fits) -> tuple[Constant, ...]:
    """Return the constants of software without a name, as ``constants/unnamed.yaml`` has them."""
    rows = [Constant.model_validate({"id": name, **row}) for name, row in _blocks("unnamed")]
    return tuple(row for row in rows if row.fits == fits)


def serving_constants(fits: Fits, catalog: Catalog) -> tuple[Constant, ...]:
    """Return the constants of serving: of each engine and each library of kernels the fields ``serving.yaml`` names.

    What a row holds at 0 or not at all is a property of the software, no number to fit. Rows that are like another, and
    hold what that one does, share its constant.
    """
    found = []
    for field, block in _blocks("serving"):
        shared = _Shared.model_validate(block)
        if shared.fits != fits:
            continue
        sharing: dict[str, list[str]] = {}
        for row_id, row in table_of(catalog, shared.table).items():
            if getattr(row, field):
                sharing.setdefault(_first_with(row, field, catalog, shared.table), []).append(row_id)
        found += [
            Constant(
                id=f"{row_id}.{field}",
                fits=fits,
                table=shared.table,
                rows=tuple(rows),
                field=field,
                prior=shared.priors.get(row_id, shared.prior),
                spread=shared.spread,
                low=shared.low,
                high=shared.high,
            )
            for row_id, rows in sharing.items()
        ]
    return tuple(found)


def _first_with(row: Row, field: str, catalog: Catalog, table: TableName) -> str:
    """Return the row that states what a row holds in a field: itself, or one that it is like."""
    like = getattr(row, "like", None)
    base = table_of(catalog, table)[like] if like else None
    if base is None or getattr(base, field) != getattr(row, field):
        return row.id
    return _first_with(base, field, catalog, table)


@dataclass(frozen=True, slots=True)
class SpreadPriors:
    """Spreads of one kind of figure before any run is seen."""

    spreads: Mapping[str, float]  # as a row of reliability.yaml has them
    distances: Mapping[str, float]  # as a row of reliability.yaml has them


@cache
def spread_priors() -> Mapping[str, SpreadPriors]:
    """Return the spreads of each kind of figure before any run is seen, as ``constants/spreads.yaml`` has them."""
    return {name: SpreadPriors(**cast("Mapping[str, Mapping[str, float]]", row)) for name, row in _blocks("spreads")}


@cache
def software_families() -> Mapping[str, str]:
    """Return the family of each row of frameworks.yaml that shares kernels or code with others."""
    data = read_yaml(FOLDER / "families.yaml").data
    if not isinstance(data, dict):
        raise TypeError("families.yaml holds no families")
    return {str(row): str(family) for family, rows in data.items() if isinstance(rows, list) for row in rows}


def all_constants(catalog: Catalog) -> tuple[Constant, ...]:
    """Return every constant of every fit to published runs."""
    fitted: tuple[Fits, ...] = ("time", "memory")
    trained = (each for fits in fitted for each in (*training_constants(fits), *unnamed_constants(fits)))
    return (*trained, *serving_constants("speed", catalog), *serving_constants("memory", catalog))


def with_values(catalog: Catalog, values: Mapping[Constant, Number]) -> Catalog:
    """Return the catalogue with other values for some constants; arrays of them make arrays of every estimate."""
    tables: dict[str, Table[Row]] = {}
    for table in {constant.table for constant in values}:
        known = table_of(catalog, table)
        rows: dict[str, Row] = {}
        for constant, value in values.items():
            for row in constant.rows if constant.table == table else ():
                rows[row] = _with_value(rows.get(row, known[row]), constant.field, value)
        tables[TABLES[table]] = known.with_rows(rows)
    return catalog.with_tables(tables)


def table_of(catalog: Catalog, table: str) -> Table[Row]:
    """Return the table of the catalogue that a file of ``profiles/`` fills."""
    found: Table[Row] = getattr(catalog, TABLES[table])
    return found


def _with_value(row: Row, field: str, value: Number) -> Row:
    name, _, key = field.partition(".")
    whole = getattr(row, name)
    found: object = value
    if isinstance(whole, tuple):
        found = tuple(value if str(place) == key else old for place, old in enumerate(whole))
    elif key:
        found = {**whole, key: value}
    return row.model_copy(update={name: found})


def _blocks(name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    path = FOLDER / f"{name}.yaml"
    data = read_yaml(path).data
    if not isinstance(data, dict):
        raise TypeError(f"{path} holds no rows")
    for key, block in data.items():
        if isinstance(block, dict):
            yield str(key), block
