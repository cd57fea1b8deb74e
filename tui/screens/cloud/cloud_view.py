"""The question about clouds as the screen has it, in the words of the engine that answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.fleet.migration import (
    JobKind,
    JobWords,
    Migration,
    MigrationQuestion,
    migrate,
    question_of_job,
)
from capacity_tui.engine.plan import edited
from capacity_tui.engine.present import explanation_text
from capacity_tui.engine.present.fleet import offer_explanation, write_migration
from capacity_tui.engine.solve import command_text, explain, fewest_settings
from capacity_tui.engine.solve.modes import ModeName
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.screens.asking.plan_question import PlanQuestion
from capacity_tui.tui.screens.cloud.offers_view import found_of
from capacity_tui.tui.screens.cloud.what_if_parts import ALL, ANY, OWN, YES, parts_of, precision_path
from capacity_tui.tui.shown.exported import Export
from capacity_tui.tui.shown.found import Found
from capacity_tui.tui.view import Field

if TYPE_CHECKING:
    from capacity_tui.engine.present import ExplanationText
    from capacity_tui.tui.shown.found import FoundRow


_USUAL = "balanced"
_FORMS = {
    "markdown": ("Offers in Markdown", ".md", "verdict, offers, what moving takes, recommendations"),
    "csv": ("Offers as CSV", ".csv", "every figure of every offer, a line each"),
    "json": ("Offers as JSON", ".json", "the same as of `fleet migrate`"),
    "yaml": ("Offers as YAML", ".yaml", "the same as of `fleet migrate`"),
    "html": ("Offers as a web page", ".html", "as in Markdown, with nothing else needed"),
}
"""What a file of each form is called, and what is in it."""


@dataclass(frozen=True)
class OffersQuestion(PlanQuestion):
    """What a plan of the engine's would be worth on other machines.

    Attributes:
        mode: id of the mode that fills the plan; empty for the usual one.
    """

    mode: str = ""

    def fields(self) -> tuple[Field, ...]:
        """Return its parts."""
        return self._fields

    def command(self) -> str:
        """Return the command that asks the same."""
        asked = self.asked()
        words = ["capacity-tui", "fleet", "migrate", *self._job_words(asked)]
        words += ["--precision", self._texts["precision"]] if self._numerics else []
        words += ["--hours", f"{asked.hours:g}", *(["--spot"] if asked.spot else [])]
        words += ["--region", asked.region] if asked.region else []
        words += ["--commitment", asked.commitment] if asked.commitment else []
        words += ["--to", ",".join(asked.instances)] if asked.instances else []
        words += ["--data", self._texts["data"]] if self._texts["data"] else []
        words += ["--mode", asked.fills] if replace(asked, mode=None).fills != asked.fills else []
        return command_text(tuple(words))

    def _job_words(self, asked: MigrationQuestion) -> list[str]:
        """Return what the command calls the job: its machine and model with settings, or a file of the plan."""
        model, hardware = self.plan.model.name, self.plan.hardware
        job = JobWords(hardware.name, model or "", asked.kind, devices=int(hardware.devices or 1))
        try:
            settings = fewest_settings(question_of_job(job, self.catalog).plan, self.plan)
        except CapacityError:
            settings = None
        if settings is None or model is None:
            return ["--model", "plan.yaml"]
        words = ["--from", str(hardware.name), "--gpus", str(job.devices), "--task", asked.kind, "--model", model]
        return [*words, *(word for setting in settings for word in ("--set", setting))]

    def answer(self, told: Callable[[Found], object], stopped: Callable[[], bool]) -> Found:
        """Compare the offers; return all of them, or those that were compared when it was stopped."""
        asked = self.asked()

        def tell(migration: Migration) -> None:
            told(self._found(migration, asked))

        return self._found(migrate(asked, self.catalog, self.machine, tell, stopped), asked)

    def asked(self) -> MigrationQuestion:
        """Return the question of the engine.

        Raises:
            CapacityError: a part of it makes no sense.
        """
        texts = self._texts
        instances = () if texts["instances"] == ANY else tuple(texts["instances"].replace(",", " ").split())
        return MigrationQuestion(
            edited(self.plan, self._numerics, self.catalog).plan if self._numerics else self.plan,
            cast("JobKind", texts["kind"]),
            hours=_number(texts["hours"]),
            spot=texts["spot"] == YES,
            region=None if texts["region"] == ANY else self.catalog.regions.find(texts["region"]).id,
            commitment=None if texts["commitment"] == "none" else texts["commitment"],
            instances=instances,
            data_bytes=parse_quantity(texts["data"], "B") if texts["data"] else 0.0,
            mode=cast("ModeName", self.mode or _USUAL),
        )

    def _found(self, migration: Migration, asked: MigrationQuestion) -> Found:
        answered = _Offers(self, asked, migration)
        return found_of(migration, asked.plan, self._numerics, answered, shows_all=self._texts["shown"] == ALL)

    @property
    def _numerics(self) -> Mapping[str, object]:
        return {precision_path(self.plan): self._texts["precision"]} if self._texts.get("precision", OWN) != OWN else {}

    @cached_property
    def _fields(self) -> tuple[Field, ...]:
        return parts_of(self.plan, self.catalog, self.said)

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {part.key: part.text for part in self._fields}


@dataclass(frozen=True)
class _Offers:
    """The offers that were compared, which can explain themselves and leave the program."""

    question: OffersQuestion
    asked: MigrationQuestion
    migration: Migration

    def explained(self, row: FoundRow, key: str) -> ExplanationText:
        """Return where a figure of an offer comes from."""
        asked = self.question
        if "." not in key:
            instance = row.page.key if row.page is not None else ""
            return offer_explanation(self.asked, instance, key, asked.catalog, asked.machine)
        plan = edited(asked.plan, row.change, asked.catalog).plan
        return explanation_text(explain(plan, key, asked.machine, asked.catalog))

    def exports(self) -> tuple[Export, ...]:
        """Return the offers in every form they can leave the program in."""
        name = f"offers-{self.migration.current.instance}"
        return tuple(
            Export(title, detail, {f"{name}{suffix}": write_migration(form, self.migration)})
            for form, (title, suffix, detail) in _FORMS.items()
        )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PlanError("not a number of hours", repr(text)[:40], "give hours a month, such as 160") from None
