"""Panel 3 of the view of scaling: the corpus, and how it is cut into patterns, one field a line."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.screens.plan.field_list import FieldList


class CorpusFields(FieldList):
    """The fields of the corpus; what is automatic follows the plan, or what is usual."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("levels")
    NUMBER = 3
    TITLE = "Corpus"
    SCOPE = "config"
    KEYS = "enter edit · backspace auto"
