"""Plans with changes that no file holds: kept on disk until they are saved or given up."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from capacity_tui.tui.store import Store
from capacity_tui.tui.swap import KeptPlan, LeftBehind, Swap


class UnsavedPlans:
    """The unsaved plans of a store.

    Args:
        store: where the plans are edited.
        swap: the file in which they are kept.
    """

    def __init__(self, store: Store, swap: Swap) -> None:
        self._store = store
        self._swap = swap
        self._numbers = count(1)
        self._restored: list[LeftBehind] = []

    def keeping(self) -> Callable[[], None]:
        """Return a function that writes the plans down as they are now; any thread may call it, the newest wins.

        What they were restored from is needed no more once they are written down anew.
        """
        number, unsaved = next(self._numbers), self._store.unsaved

        def keep() -> None:
            plans = [KeptPlan(document.name, str(path or ""), document.dump()) for document, path in unsaved]
            self._swap.keep(plans, number)
            for kept in self._restored:
                kept.discard()

        return keep

    def left_behind(self) -> tuple[LeftBehind, ...]:
        """Return what earlier runs of the program left behind."""
        return tuple(self._swap.left_behind())

    def restored_from(self, kept: LeftBehind) -> None:
        """Remember where plans were restored from."""
        self._restored.append(kept)

    def give_up(self) -> None:
        """Keep nothing any more: all is saved, or the user wants none of it."""
        for kept in self._restored:
            kept.discard()
        self._swap.close()
