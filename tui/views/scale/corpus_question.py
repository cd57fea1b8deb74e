"""The plan's data as a corpus of patterns, in the words of the engine that estimates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import SupportsFloat

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import roomiest_disk
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve import command_text
from capacity_tui.engine.storage import Known as KnownOfPatterns
from capacity_tui.engine.storage import PatternQuestion, pattern_storage
from capacity_tui.engine.units import format_bytes, format_count, format_number, format_percent, parse_quantity
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.comparison import Chosen, Trial
from capacity_tui.tui.shown.results import Field
from capacity_tui.tui.shown.scale import SAMPLES, StoredPatterns
from capacity_tui.tui.views.query_view.search import question_fields
from capacity_tui.tui.views.scale.present import stored_patterns

_USUAL = PatternQuestion(samples=100e6, tokens=500)
"""A corpus that a plan says nothing of: as many texts as patterns are planned for, each of a page."""
_NOT_OF_PLAN = "the plan does not say"
_IN_FULL = 1e6  # Numbers from here on are written with their thousands as a letter
_SHARE = "share"
_SHARES = ("dedup", "dedup_decay", "overhead")
_WHOLE = (SAMPLES, "chunk", "levels", "fan_in")


@dataclass(frozen=True)
class PlanCorpus:
    """The data of a plan as a corpus of patterns."""

    plan: Plan
    machine: Machine | None  # what was detected; its disk and memory are what there is room in
    catalog: Catalog = field(compare=False, repr=False)  # facts
    given: Mapping[str, str] = field(default_factory=dict)  # texts by key of the field

    def fields(self) -> tuple[Field, ...]:
        return tuple(map(self._field, question_fields("corpus").values()))

    def chosen(self) -> Mapping[str, Chosen]:
        return {key: chosen for key, chosen in self._usual.items() if key not in self.given}

    def edited(self, key: str, text: str) -> PlanCorpus:
        given = {name: value for name, value in self.given.items() if name != key}
        if text and text.casefold() != AUTO:
            number = parse_quantity(text, _SHARE if key in _SHARES else "B" if key == "pattern_bytes" else "")
            if key in _WHOLE and number != round(number):
                raise PlanError(f"{text} is not whole", hint="such as 100 or 50k")
            given[key] = f"{number:.15g}"
        after = replace(self, given=given)
        after.question.check()
        return after

    def command(self) -> str:
        given = {SAMPLES: f"{self._number(SAMPLES):.15g}", "tokens": f"{self._number('tokens'):.15g}", **self.given}
        options = [part for key, text in given.items() for part in (f"--{key.replace('_', '-')}", text)]
        return command_text(("capacity-tui", "storage", "estimate", *options))

    def trial(self, key: str, text: str) -> Trial:
        try:
            question = self.edited(key, text).question
        except CapacityError as error:
            return Trial(Verdict.CANNOT_RUN, reason=error.title)
        return _size_trial(question, self.machine, self.catalog)

    def patterns(self) -> StoredPatterns:
        return stored_patterns(self.question, self.machine, self.catalog)

    @cached_property
    def question(self) -> PatternQuestion:
        given = {key: float(text) for key, text in self.given.items()}
        by_level = {key: (given[key],) if key in given else () for key in ("alpha", "dedup", "pattern_bytes")}
        return PatternQuestion(
            self._number(SAMPLES),
            self._number("tokens"),
            self._number("chunk"),
            round(self._number("levels")),
            given.get("fan_in"),
            by_level["alpha"],
            by_level["dedup"],
            given.get("dedup_decay"),
            given.get("overhead"),
            by_level["pattern_bytes"],
        )

    def _number(self, key: str) -> float:
        return float(self.given[key]) if key in self.given else self._usual[key].value or 0.0

    def _field(self, field: Field) -> Field:
        if field.key not in self.given:
            return replace(field, is_auto=True, can_be_auto=True)
        number = float(self.given[field.key])
        return replace(field, text=_text(field.key, number), value=number, can_be_auto=True)

    @cached_property
    def _usual(self) -> Mapping[str, Chosen]:
        known, usual = KnownOfPatterns(_USUAL, self.catalog), "the usual value"
        assumed = {"alpha": "alpha", "dedup": "deduplication", "dedup_decay": "deduplication-decay"}
        reasons = {key: known.assumed(row).source for key, row in assumed.items()}
        parts = ", ".join(f"{part} {format_percent(share)}" for part, share in known.overhead_parts.items())
        return {
            SAMPLES: self._samples(),
            "tokens": self._tokens(),
            "chunk": _chosen("chunk", _USUAL.chunk, usual),
            "levels": _chosen("levels", _USUAL.levels, "chunks, paragraphs, chapters and books"),
            "fan_in": Chosen("as in a chunk", "as many patterns make one of the next level as tokens make a chunk"),
            "pattern_bytes": Chosen("by length", "it follows from the elements of a pattern"),
            "alpha": _chosen("alpha", known.alpha(0), reasons["alpha"]),
            "dedup": _chosen("dedup", known.first_deduplication, reasons["dedup"]),
            "dedup_decay": _chosen("dedup_decay", known.decay, reasons["dedup_decay"]),
            "overhead": _chosen("overhead", known.overhead, parts),
        }

    def _samples(self) -> Chosen:
        """Return how many texts the plan has: as it says, or as many as its tokens or steps make."""
        training = self.plan.training
        numbers = (
            (_known(training.samples), "samples of the plan"),
            (_known(training.tokens) / (self._plan_tokens or 1.0), "tokens of the plan"),
            (_known(training.steps) * _known(training.global_batch), "samples of all its steps"),
        )
        known = (_chosen(SAMPLES, round(number), why) for number, why in numbers if number >= 1 and self._plan_tokens)
        return next(known, _chosen(SAMPLES, _USUAL.samples, f"{_NOT_OF_PLAN} how many texts there are"))

    def _tokens(self) -> Chosen:
        """Return how long a text is."""
        if not self._plan_tokens:
            return _chosen("tokens", _USUAL.tokens, f"{_NOT_OF_PLAN} how long its texts are")
        is_document = bool(self.plan.training.document_tokens)
        return _chosen("tokens", self._plan_tokens, "documents of the plan" if is_document else "its sequences")

    @cached_property
    def _plan_tokens(self) -> float:
        """Tokens of a text that the plan trains on; 0 where it trains on none."""
        training = self.plan.training
        is_text = presumed_family(self.plan.model.name, self.catalog).kind == "transformer"
        length = _known(training.document_tokens) or _known(training.seq_len)
        return length if is_text and not self.plan.is_inference else 0.0


def _known(value: float | str | None) -> float:
    """Return a number of a plan; 0 where it is open or left out."""
    return 0.0 if value is None or isinstance(value, str) else float(value)


def _chosen(key: str, value: SupportsFloat, reason: str) -> Chosen:
    return Chosen(_text(key, float(value)), reason, float(value))


def _text(key: str, number: float) -> str:
    if key in _SHARES:
        return format_percent(number, 1).replace(".0 ", " ")
    if number >= _IN_FULL:
        return format_count(number).replace(".0 ", " ")
    return format_number(number) if number == round(number) else f"{number:g}"


def _size_trial(question: PatternQuestion, machine: Machine | None, catalog: Catalog) -> Trial:
    """Return what the patterns of a corpus take of the disk of a machine, or of nowhere in particular."""
    size = float(pattern_storage(question, catalog).total_bytes.value)
    disk = None if machine is None else roomiest_disk(machine)
    free = None if disk is None else disk.free_bytes.value
    share = size / free if free else None
    verdict = Verdict.UNKNOWN if share is None else Verdict.FITS if share <= 1 else Verdict.DOES_NOT_FIT
    return Trial(verdict, time=format_bytes(size, "GB"), share=share)
