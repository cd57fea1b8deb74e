"""Parts of a model that a line trains or freezes: its towers, its language model, what joins both."""

from __future__ import annotations

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, TRAIN, Meaning
from capacity_tui.engine.plan.line.option_words import OptionWords
from capacity_tui.engine.plan.sections import FROZEN_TOWERS, TRAINED_TOWERS
from capacity_tui.engine.record import dataclass

_TOWERS, _ALL_THE_REST = "towers", "rest"  # Parts of a model
_TRAINED, _FROZEN = TRAINED_TOWERS, FROZEN_TOWERS  # What becomes of them
_UNFROZEN = "unfrozen"
_MOST_WORDS = 3  # That name a part


@dataclass(frozen=True, slots=True)
class Statement:
    """What a line says of a part of a model, and where it ends."""

    part: str
    state: str
    end: int

    @property
    def is_read(self) -> bool:
        """Whether a plan follows it: all but a frozen language model, and a trained one, which any line may have."""
        return self.part != _ALL_THE_REST or self.state not in (_FROZEN, _TRAINED)


class FrozenWords(OptionWords):
    """A line whose words were recognized, and those of them that freeze parts of a model."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        super().__init__(text, catalog)
        self._statements: dict[int, Statement] = {}

    def _find_options(self) -> None:
        """Set statements aside before names are looked for, as parts may be called like models."""
        index = 0
        while index < len(self._tokens):
            statement = self._statement(index)
            if statement is not None and statement.is_read and self._is_free(index, statement.end - index):
                self._statements[index] = statement
                self._taken[index] = statement.end - index, Meaning()
            index = index + 1 if statement is None else statement.end
        super()._find_options()

    def _set_options(self) -> None:
        super()._set_options()
        for start, statement in self._statements.items():
            count = statement.end - start
            is_training, text = self._task in (TRAIN, FINETUNE), self._span(start, count)
            state = _FROZEN if statement.state == _FROZEN else _TRAINED
            values: dict[str, object] = {Key.TRAINING_TOWERS: state} if statement.part == _TOWERS else {}
            is_small = state == _FROZEN and statement.part != _TOWERS
            why = f"left out: {text}" if is_small or not is_training else ""
            why += "; its few weights are counted as trained" if is_small and is_training else ""
            self._take(start, count, Meaning(why=why) if why else Meaning(text if values else "", values))

    def _statement(self, index: int) -> Statement | None:
        """Return what begins at a word: ``vision tower frozen``, ``frozen vision``, ``not freeze``; None elsewhere."""
        part, behind = self._part(index)
        if part:
            state, end = self._state(self._past_joints(behind))
            return Statement(part, state, end) if state else None
        state, end = self._state(index)
        part, behind = self._part(self._past_joints(end)) if state else ("", end)
        is_other = self._is_of_next(behind) or (state == _TRAINED and part == _ALL_THE_REST)
        if part and not is_other:
            return Statement(part, state, behind)
        is_denied = state == _UNFROZEN and end > index + 1  # it must not freeze
        return Statement(_ALL_THE_REST, state, end) if is_denied else None

    def _part(self, index: int) -> tuple[str, int]:
        """Return which part of a model some words are, and where they end; none for others."""
        for count in range(min(_MOST_WORDS, len(self._tokens) - index) if index >= 0 else 0, 0, -1):
            is_one = not any(self._is_apart(at) for at in range(index, index + count - 1))
            if is_one and (part := vocabulary().frozen_parts.get(key_of(self._span(index, count)))):
                return part, index + count
        return "", index

    def _state(self, index: int) -> tuple[str, int]:
        """Return what some words say that becomes of a part, and where they end; none for others."""
        for count in (few for few in (2, 1) if 0 <= index <= len(self._tokens) - few):
            if state := vocabulary().frozen_states.get(key_of(self._span(index, count))):
                return state, index + count
        return "", index

    def _past_joints(self, index: int) -> int:
        """Return the place of the first word that joins nothing; -1 where a comma or the end comes before it."""
        while index < len(self._tokens) and not self._is_apart(index - 1):
            if key_of(self._span(index, 1)) not in vocabulary().frozen_joints:
                return index
            index += 1
        return -1

    def _is_of_next(self, end: int) -> bool:
        """Whether what stands behind a part is all that the line has of it: ``frozen vision trained``."""
        state, behind = self._state(self._past_joints(end))
        return bool(state) and not self._part(self._past_joints(behind))[0]

    def _refusal(self, words: str) -> str | None:
        """Refuse what freezes in a training alone: ``my pc freezes`` is of none."""
        is_of_none = self._task not in ("", TRAIN, FINETUNE) and key_of(words) in vocabulary().frozen_states
        return None if is_of_none else super()._refusal(words)
