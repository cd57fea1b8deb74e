"""The guided start: which keys to try, one after another; in their texts actions stand in braces for their keys."""

from __future__ import annotations

from typing import NamedTuple

ADVICE_APPLIED = "advice.applied"  # What `a` counts as where there was advice to apply


class _Step(NamedTuple):
    """One key to try."""

    actions: frozenset[str]  # any of these does it
    text: str  # what to do and what comes of it
    brief: str  # the same where there is no room
    is_of_plan: bool = False  # whether the key does this on the plan alone, not in other views


_STEPS = (
    _Step(
        frozenset(("value.more", "value.less", "value.much_more", "value.much_less", "value.type")),
        "j moves to a field, {value.more} or {value.less} steps it: the lines above say at once what changes "
        "({app.help} all keys, {view.back} ends this)",
        "j to a field, {value.more} steps it ({view.back} ends this)",
        is_of_plan=True,
    ),
    _Step(
        frozenset((ADVICE_APPLIED, "edit.undo")),
        "{advice.apply} applies the best advice of panel 6, where there is any; {edit.undo} undoes any edit",
        "{advice.apply} applies the best advice, {edit.undo} undoes an edit",
        is_of_plan=True,
    ),
    _Step(
        frozenset(("view.find",)),
        "{view.choose} {view.find} finds the best plan: all layouts and hardware, within your limits; "
        "{view.back} comes back",
        "{view.choose} {view.find} finds the best plan; {view.back} comes back",
    ),
    _Step(
        frozenset(("view.run",)),
        "{view.choose} {view.run} shows a run beside its prediction: an example until you watch one of yours; "
        "{view.back} comes back",
        "{view.choose} {view.run} shows a run beside its prediction",
    ),
    _Step(
        frozenset(("file.export",)),
        "{file.export} writes the plan for your framework, engine or scheduler, or as a report ({view.back} comes back "
        "to Plan first)",
        "{file.export} writes the plan for your framework",
    ),
)


class Guide:
    """Says which key to try next, where that was not seen yet."""

    def __init__(self, is_wanted: bool) -> None:
        self._at = 0 if is_wanted else len(_STEPS)
        self._is_done = False

    @property
    def is_over(self) -> bool:
        return self._at == len(_STEPS)

    @property
    def has_begun(self) -> bool:
        return self._at > 0 or self._is_done

    def wordings(self, *, on_plan: bool) -> tuple[str, ...]:
        """Return what to try now, the longest wording first; nothing while one still looks at what came of it."""
        if self.is_over or self._is_done:
            return ()
        step = _STEPS[self._at]
        if step.is_of_plan and not on_plan:
            return ()
        return tuple(f"{self._at + 1} of {len(_STEPS)}: {text}" for text in (step.text, step.brief))

    def take(self, action: str) -> None:
        self._is_done |= not self.is_over and action in _STEPS[self._at].actions

    def go_on(self) -> bool:
        """Go on to the next key once another came, and return whether that ends it."""
        if not self._is_done:
            return False
        self._at, self._is_done = self._at + 1, False
        return self.is_over

    def end(self) -> None:
        self._at, self._is_done = len(_STEPS), False
