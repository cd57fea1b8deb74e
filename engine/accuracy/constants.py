"""The constants of the physics that a fit to published runs may move, with their priors."""

from __future__ import annotations

from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from capacity_tui.engine.catalog.reading import read_yaml


class Constant(BaseModel):
    """One constant, shared by the catalogue rows it names."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str
    fits: Literal["time", "memory"] = Field(description="what it is fitted to")
    table: Literal["efficiency", "frameworks"] = Field(description="catalogue that holds it")
    rows: tuple[str, ...] = Field(min_length=1, description="rows that share the value")
    field: str = Field(description="field of these rows; gemm.bf16 names an entry, saved_activation.0 a place")
    prior: float = Field(description="value that operator timings or the method itself give")
    spread: PositiveFloat = Field(description="standard deviation of its logarithm around the prior")
    low: float = Field(0.01, description="smallest sensible value")
    high: float = Field(1000.0, description="largest sensible value")
    hidden: bool = Field(False, description="a share hidden: the fit moves what is left to 1")


def read_constants(fits: str) -> tuple[Constant, ...]:
    """Return the constants fitted to ``time`` or to ``memory``, as ``profiles/fitting.yaml`` declares them."""
    text = resources.files("capacity_tui.profiles").joinpath("fitting.yaml").read_text("utf-8")
    data = read_yaml(text, "fitting.yaml").data
    if not isinstance(data, dict):
        return ()
    rows = [Constant.model_validate({"id": name, **row}) for name, row in data.items() if isinstance(row, dict)]
    return tuple(row for row in rows if row.fits == fits)
