"""Rows about logs: how a program writes down what its run does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from capacity_tui.engine.catalog.rows.base import Row
from capacity_tui.engine.catalog.rows.log_expressions import (
    LOG_FIGURES,
    Expression,
    Key,
    parse_expression,
    parse_key,
    pattern,
)


def _listed(value: object) -> object:
    """Return one text as a list of one."""
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])]


class RunLog(Row):
    """How one program writes its logs."""

    signs: tuple[str, ...] = Field((), description="texts of which a line has to hold one")
    lines: str | None = Field(None, description="expression that a line has to hold too")
    figures: Mapping[str, Texts] = Field({}, description="expressions that find figures in lines")
    keys: Mapping[str, Texts] = Field({}, description="names of figures where names are written with values")
    summary_signs: tuple[str, ...] = Field((), description="texts by which a line sums up the whole run")
    precisions: Mapping[str, Texts] = Field({}, description="expressions for lines that say the number format")
    otherwise: bool = Field(False, description="looked at only where no other row reads a step")

    @field_validator("figures", "keys")
    @classmethod
    def _known_figures(
        cls, value: Mapping[str, tuple[str, ...]], info: ValidationInfo
    ) -> Mapping[str, tuple[str, ...]]:
        unknown = sorted(set(value) - set(LOG_FIGURES))
        if unknown:
            raise ValueError(f"no figure of logs is called {unknown[0]!r}; known: {', '.join(LOG_FIGURES)}")
        for texts in value.values():
            for text in texts:
                parse_expression(text) if info.field_name == "figures" else parse_key(text)
        return value

    @field_validator("lines")
    @classmethod
    def _regular(cls, value: str | None) -> str | None:
        if value is not None:
            pattern(value)
        return value

    @field_validator("precisions")
    @classmethod
    def _all_regular(cls, value: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        for texts in value.values():
            for text in texts:
                pattern(text)
        return value

    @cached_property
    def expressions(self) -> Mapping[str, tuple[Expression, ...]]:
        """What finds each figure in a line, ready to search."""
        return {figure: tuple(map(parse_expression, texts)) for figure, texts in self.figures.items()}

    @cached_property
    def named(self) -> Mapping[str, tuple[Key, ...]]:
        """Names of each figure, the ones that count first first."""
        return {figure: tuple(map(parse_key, texts)) for figure, texts in self.keys.items()}
