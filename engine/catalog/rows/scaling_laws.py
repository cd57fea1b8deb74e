"""Rows about scaling laws: how the loss of a language model falls with its size and its data."""

from __future__ import annotations

from pydantic import PositiveFloat

from capacity_tui.engine.catalog.rows.base import Row


class ScalingLaw(Row):
    """Loss in nats a token over parameters and tokens of training."""

    irreducible: PositiveFloat
    size_factor: PositiveFloat
    size_power: PositiveFloat
    data_factor: PositiveFloat
    data_power: PositiveFloat
