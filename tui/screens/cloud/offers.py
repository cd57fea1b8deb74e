"""Panels 2 and 3 of the view of clouds: the offers, and all of the one under the cursor."""

from __future__ import annotations

from capacity_tui.tui.screens.asking.found_table import FoundTable
from capacity_tui.tui.screens.plan.why import Why


class Offers(FoundTable):
    """Machines that could be rented for the plan, one a line."""

    TITLE = "Offers"
    SCOPE = "found"


class Offer(Why):
    """Figures, reasons and remedies of one offer; each figure opens into what it comes from."""

    NUMBER = 3
    TITLE = "Offer"
    SCOPE = "why"
    KEYS = "enter opens a figure, backspace goes back"
    NOTHING = "Choose an offer to see what it costs, what moving takes and what may go wrong."

    def __init__(self) -> None:
        super().__init__()
        self.add_class("aside")
