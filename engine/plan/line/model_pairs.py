"""The words of a line that name a second model: a draft that guesses for the first, a teacher that it learns from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.figure_words import FigureWords
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.task_words import TASK
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, Assumption, Meaning
from capacity_tui.engine.units import format_count, parse_quantity

_MOST_WORDS = 5  # Words that the name of a model may have, as ``llama 3.1 8b instruct``
_SIZES = re.compile(r"(\d+(?:\.\d+)?b)(?:[-/ ]a|/)(\d+(?:\.\d+)?b)", re.IGNORECASE)
_SEVERAL = frozenset({"multilora", "multiloraserving"})  # Adapters of which nobody says how many
_Model: TypeAlias = tuple[int, int, int]  # Parameters, where the name begins, and how many words it has
_LIKE_IT = 0.15  # Share by which a mixture may differ from the sizes that the line gives


class ModelPairs(FigureWords):
    """A line whose words are being recognized, and those of them that name a second model."""

    def _second_model(self) -> None:
        """Take one of two models for the draft of the other or for its teacher: by the words, else by their sizes."""
        keys, words = self._keys(), vocabulary()
        guesses, teaches = not keys.isdisjoint(words.guessing | words.drafts), not keys.isdisjoint(words.teaching)
        named = [*self._models()] if guesses or teaches else []
        if len(named) != 2 or guesses == teaches:
            return
        size, index, count = self._draft(named) if guesses else self._teacher(named)
        path, name = (
            (Key.INFERENCE_DRAFT_PARAMETERS, "draft") if guesses else (Key.TRAINING_TEACHER_PARAMETERS, "teacher")
        )
        values: dict[str, object] = {path: size}
        if teaches:
            values |= {TASK: FINETUNE, Key.TRAINING_PREFERENCE: "distillation"}
        self._take(index, count, Meaning(f"{name} of {format_count(size)}", values))

    def _draft(self, named: Sequence[_Model]) -> _Model:
        """Return the model that stands next to the word draft; the smaller where neither or both do."""
        alongside = (
            (model, {key_of(self._word(model[1] - 1)), key_of(self._word(model[1] + model[2]))}) for model in named
        )
        drafts = [model for model, words in alongside if words & vocabulary().drafts]
        return drafts[0] if len(drafts) == 1 else min(named)

    def _teacher(self, named: Sequence[_Model]) -> _Model:
        """Return the model that is distilled: before ``into`` or after ``from``; the larger where neither is said."""
        first, second = sorted(named, key=itemgetter(1))
        between = {key_of(token.text) for token in self._tokens[first[1] + first[2] : second[1]]}
        if between & vocabulary().becoming:
            return first
        return second if between & vocabulary().coming_from else max(named)

    def _word(self, index: int) -> str:
        return self._tokens[index].text if 0 <= index < len(self._tokens) else ""

    def _keys(self) -> set[str]:
        """Return the keys of all words, and of each two."""
        keys = [key_of(token.text) for token in self._tokens]
        return {*keys, *map("".join, pairwise(keys))}

    def _models(self) -> Iterator[_Model]:
        """Yield the parameters of models that the line names, where their names begin and how many words they have."""
        index = 0
        while index < len(self._tokens):
            model = next(filter(None, (self._model_at(index, count) for count in range(_MOST_WORDS, 0, -1))), None)
            if model is not None:
                yield model
            index += 1 if model is None else model[2]

    def _model_at(self, index: int, count: int) -> _Model | None:
        """Return the model that some words name, by its parameters."""
        tokens = self._tokens[index : index + count]
        if len(tokens) < count or any(token.ends for token in tokens[:-1]):
            return None
        name = " ".join(token.text for token in tokens)
        size = models.is_size(tokens[0].text) and tokens[0].text[-1] in "bB"
        if count == 1 and (not any(map(str.isdigit, name)) or (settings.is_number(name) and not size)):
            return None
        if count == 1 and size and self._is_counted(index):
            return None  # 2B tokens
        meaning = models.named_model(name, self._catalog)
        meaning = meaning or (models.sized_model(name, self._catalog) if size and count == 1 else None)
        if meaning is None and count == 2 and models.is_size(tokens[1].text) and tokens[0].text.isalpha():
            meaning = models.resembling_model(name.replace(" ", "-"), self._catalog)  # llama 70b
        row_id = None if meaning is None else self._catalog.architectures.find_id(str(meaning.values[models.MODEL]))
        total = None if row_id is None else self._catalog.architectures[row_id].params_total
        if size and count == 1:
            total = round(parse_quantity(name, ""))
        return None if not total else (total, index, count)

    def _split_mixture(self) -> None:
        """Read the sizes of a mixture that is called by them, as ``400B-A17B``, as two words."""
        for index, words in ((at, words) for at in range(len(self._tokens)) for words in (1, 2)):
            match, before = _SIZES.fullmatch(self._span(index, words)), self._span(max(index - 1, 0), 1)
            names = (self._span(index, words), f"{before}-{self._span(index, words)}")
            if match is not None and not any(models.resembling_model(name, self._catalog) for name in names):
                parts = (match[1], match[2], max(vocabulary().active, key=len))
                self._tokens[index : index + words] = [replace(self._tokens[index], text=part) for part in parts]

    def _mixture(self) -> None:
        """Take the mixture of experts that has the sizes of a line, as ``30B with 3B active``."""
        self._split_mixture()
        numbers = [at for at, token in enumerate(self._tokens) if models.is_size(token.text)]
        at = next((at for at in numbers if key_of(self._span(at + 1, 1)) in vocabulary().active), None)
        totals = [other for other in numbers if other != at and not self._is_counted(other)]
        if at is None or not totals or models.MODEL in self._values:
            return
        active, total = (parse_quantity(self._tokens[place].text, "") for place in (at, totals[0]))
        rows = (row for row in self._catalog.architectures.values() if row.experts and row.params_active)
        unlike = {
            row.id: max(abs((row.params_total or 0) / total - 1), abs((row.params_active or 0) / active - 1))
            for row in rows
        }
        size = self._tokens[totals[0]].text.casefold()
        nearest = min(
            unlike, key=lambda name: (unlike[name] > _LIKE_IT, size not in name.split("-"), unlike[name]), default=""
        )
        if nearest and unlike[nearest] <= _LIKE_IT:
            text = f"{self._tokens[totals[0]].text} with {self._tokens[at].text} active"
            why = f"{text}: {nearest}, a mixture of about these sizes"
            self._take(totals[0], 1, Meaning(f"model {nearest}", {models.MODEL: nearest}, why))
            self._take(at, 2, Meaning())

    def _served_adapters(self) -> None:
        """Ask how many adapters are served where the line only says that there are several."""
        keys = self._keys()
        if keys & _SEVERAL and Key.INFERENCE_ADAPTERS not in self._values and "howmany" not in keys:
            self._faults.append(PlanError("how many adapters?", hint="say how many are served, as 20 adapters"))

    def _guesses_ahead(self) -> None:
        """Guess as many tokens as usual where the line says that some are guessed."""
        path, has_draft = Key.INFERENCE_NUM_SPECULATIVE_TOKENS, Key.INFERENCE_DRAFT_PARAMETERS in self._values
        is_guessed = has_draft or not self._keys().isdisjoint(vocabulary().guessing)
        if self._task == INFER and is_guessed and path not in self._values:
            self._values[path] = tokens = int(vocabulary().usual[INFER][path])
            self._assumed.append(
                Assumption(path, tokens, f"{tokens} tokens guessed before each pass (or give 4 draft tokens)")
            )
