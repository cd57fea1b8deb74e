"""Rows about the batches of published pre-training runs."""

from __future__ import annotations

from pydantic import Field, PositiveFloat

from capacity_tui.engine.catalog.rows.base import Row


class TrainingBatch(Row):
    """Tokens of an optimizer step that a published run used."""

    parameters: PositiveFloat = Field(description="of the model, embeddings included")
    mixture: bool = Field(description="whether the model is a mixture of experts")
    tokens_per_step: PositiveFloat = Field(description="at the end of the schedule of its batch")
