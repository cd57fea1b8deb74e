"""The view of clouds: what the plan is worth on every machine one can rent, and whether moving there pays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import cast

from textual.app import ComposeResult

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.fleet.migration import (
    JOB_KINDS,
    JobKind,
    JobWords,
    Migration,
    MigrationQuestion,
    job_kind_of,
    migrate,
    question_of_job,
)
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.present import ExplanationText, explanation_text
from capacity_tui.engine.present.fleet import offer_explanation, write_migration
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import command_text, explain, fewest_settings
from capacity_tui.engine.solve.modes import ModeName
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import Export, Field, ResultRow, Results
from capacity_tui.tui.text import Line, Span, clip, line, wrap
from capacity_tui.tui.views.cloud.present import results_of
from capacity_tui.tui.views.dialogs.export import Exporting
from capacity_tui.tui.views.plan.estimates import Following
from capacity_tui.tui.views.plan.field_values import field_lines
from capacity_tui.tui.views.plan.why import Why
from capacity_tui.tui.views.query_view.results import ResultTable
from capacity_tui.tui.views.query_view.screen import ROWS, QueryScreen
from capacity_tui.tui.views.query_view.search import PlanQuestion, question_fields
from capacity_tui.tui.views.view_screen import size_classes
from capacity_tui.tui.widgets.lines import DrawnLines
from capacity_tui.tui.widgets.panel import Panel


class CloudScreen(QueryScreen):
    """Compares offers of clouds for the current plan."""

    VIEW = "cloud"
    HORIZONTAL_BREAKPOINTS = size_classes(slender=0, broad=160)
    VERTICAL_BREAKPOINTS = size_classes(low=0, short=16, middle=22, tall=36)

    def __init__(self, session: Session) -> None:
        offer = Offer()
        super().__init__(session, Offers(), offer, lambda document, given: document.migration(self._mode, given))
        self._mode = ""
        self._offer, self._conclusion = offer, Conclusion()
        self._shown_key: tuple[tuple[str, str], ...] = ()
        following = Following(session, self, offer, self.show_text, self._leave_offer, self._explainer)
        self.commands = {
            **self.commands,
            **following.commands,
            "panel.offer": partial(self.go_to, offer),
            "found.export": self._export,
            "cloud.recommendations": self._show_conclusion,
        }

    @property
    def has_room_aside(self) -> bool:
        """Whether there is room for the offer beside or below the rows."""
        return self.has_class("-broad") or self.has_class("-tall")

    def follow_plan(self) -> None:
        """Ask anew also where another mode fills the plan."""
        column = self.session.store.mode_column
        if column is not None and column.mode != self._mode:
            self._mode = column.mode
            self.forget_answers()
        super().follow_plan()

    def conclusion(self) -> ComposeResult:
        yield self._conclusion

    def why_nothing(self, results: Results) -> str:
        """Return that no offer holds the job, or why."""
        return next(iter(results.remarks), "no offer") + "; Show all lists what does not fit"

    def show_row(self) -> None:
        """Show all of the offer under the cursor, and the verdict over all of them."""
        results, row = self.table.results, self.table.row
        self._conclusion.show_results(results, is_old=self.table.is_old)
        key = row.key if row is not None else ()
        if key != self._shown_key:
            self.session.cancel(self, "follow")
        if key != self._shown_key or not self._offer.is_followed:
            self._offer.show_explanation(row.page if row is not None else None)
        self._shown_key = key

    def go_to(self, panel: Panel) -> None:
        super().go_to(panel)
        if panel is self._offer and (not self.has_room_aside or self.has_class(ROWS)):
            self.lay_out(aside=True, rows=False)

    def _leave_offer(self) -> None:
        if self.current is self._offer:
            self.go_to(self.table)

    def _explainer(self) -> Callable[[str], ExplanationText] | None:
        """Return what explains figures of the offer that is shown."""
        results, row = self.table.results, self.table.row
        if results is None or row is None or results.source is None or self.table.is_old:
            return None
        return partial(results.source.explained, row)

    def _export(self) -> None:
        """Show the forms that the offers can be written in, then ask where to write one."""
        results = self.table.results
        if results is None or results.source is None or self.table.is_old:
            self.session.say("no offers yet; nothing was written", "warn")
            return
        Exporting(self.session, self.ask).choose("Export the offers", results.source.exports)

    def _show_conclusion(self) -> None:
        """Show verdict and recommendations in full."""
        results = self.table.results
        self.show_text("Whether to move, and where to", lambda width: conclusion_lines(results, width))


class Conclusion(DrawnLines):
    """One line for the verdict, and one for each recommendation where there is room."""

    def __init__(self) -> None:
        super().__init__(id="conclusion")
        self._remarks: tuple[str, ...] = ()
        self._is_old = False

    def show_results(self, results: Results | None, *, is_old: bool) -> None:
        self._remarks, self._is_old = results.remarks if results is not None else (), is_old
        self.repaint()

    def draw(self, width: int) -> list[Line]:
        roles = ("best", *("value" for _ in self._remarks[1:]))
        remarks = zip(self._remarks, roles, strict=False)
        return [line(Span(clip(f" {text}", width), "dim" if self._is_old else role)) for text, role in remarks]


def conclusion_lines(results: Results | None, width: int) -> list[Line]:
    if results is None or not results.remarks:
        return [line(Span("Nothing compared yet.", "value"))]
    verdict, *others = results.remarks
    lines = [line(Span(text, "best")) for text in wrap(verdict, width)]
    for remark in others:
        lines += [line(), *(line(Span(text, "value")) for text in wrap(remark, width))]
    return lines


class Offers(ResultTable):
    """Machines that could be rented for the plan, one a line."""

    TITLE = "Offers"
    SCOPE = "found"


class Offer(Why):
    """Figures, reasons and remedies of one offer; each figure opens into what it comes from."""

    NUMBER = 3
    TITLE = "Offer"
    SCOPE = "why"
    KEYS = "{why.follow} opens a figure, {why.back} goes back"
    NOTHING = "Choose an offer to see its cost, its migration and its risks."

    def __init__(self) -> None:
        super().__init__()
        self.add_class("aside")


ANY, OWN, ALL, NO, YES = "any", "the plan's", "all", "no", "yes"
"""What stands for everything there is, for what the plan has, and for offers that do not hold the job too."""


def precision_path(plan: Plan) -> str:
    return Key.INFERENCE_WEIGHTS if plan.is_inference else Key.TRAINING_PRECISION


def parts_of(plan: Plan, catalog: Catalog, given: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the parts of the question about a plan: what was said, and what makes sense at once for the rest."""
    known = question_fields("cloud")
    kind = replace(known["kind"], text=job_kind_of(plan), choices=tuple(JOB_KINDS))
    usual = {"spot": YES if plan.pricing.spot else NO, "commitment": plan.pricing.commitment}
    usual |= {"region": plan.pricing.region} if plan.pricing.region else {}
    providers = dict.fromkeys(row.provider for row in catalog.instances.values())
    offers = replace(known["instances"], choices=(ANY, *providers))
    numerics = _precision(plan, catalog, known["precision"])
    parts = {**known, "kind": kind, "instances": offers, "precision": numerics}.values()
    return tuple(replace(part, text=given.get(part.key, usual.get(part.key, part.text))) for part in parts if part)


def _precision(plan: Plan, catalog: Catalog, part: Field) -> Field | None:
    """Return the part of the numerics with the choices of the plan; None where it has none."""
    path = precision_path(plan)
    fields = (field for field in field_lines(plan, catalog) if field.key == path)
    return next((replace(part, choices=(OWN, *field.choices), words=field.words) for field in fields), None)


_USUAL = "balanced"

_FORMS = {
    "markdown": ("Offers in Markdown", ".md", "verdict, offers, migration, recommendations"),
    "csv": ("Offers as CSV", ".csv", "every figure of every offer, one line per offer"),
    "json": ("Offers as JSON", ".json", "the same data as `fleet migrate`"),
    "yaml": ("Offers as YAML", ".yaml", "the same data as `fleet migrate`"),
    "html": ("Offers as a web page", ".html", "the same report as one self-contained page"),
}
"""What a file of each form is called, and what is in it."""


@dataclass(frozen=True)
class OffersQuestion(PlanQuestion):
    """What a plan of the engine's would be worth on other machines."""

    mode: str = ""  # id of the mode that fills the plan; empty for the usual one

    def fields(self) -> tuple[Field, ...]:
        return self._fields

    def command(self) -> str:
        query = self.stated()
        words = ["capacity-tui", "fleet", "migrate", *self._job_words(query)]
        words += ["--precision", self._texts["precision"]] if self._numerics else []
        words += ["--hours", f"{query.hours:g}", *(["--spot"] if query.spot else [])]
        words += ["--region", query.region] if query.region else []
        words += ["--commitment", query.commitment] if query.commitment else []
        words += ["--to", ",".join(query.instances)] if query.instances else []
        words += ["--data", self._texts["data"]] if self._texts["data"] else []
        words += ["--mode", query.fills] if replace(query, mode=None).fills != query.fills else []
        return command_text(tuple(words))

    def _job_words(self, query: MigrationQuestion) -> list[str]:
        """Return what the command calls the job: its machine and model with settings, or a file of the plan."""
        model, hardware = self.plan.model.name, self.plan.hardware
        job = JobWords(hardware.name, model or "", query.kind, devices=int(hardware.devices or 1))
        try:
            settings = fewest_settings(question_of_job(job, self.catalog).plan, self.plan)
        except CapacityError:
            settings = None
        if settings is None or model is None:
            return ["--model", "plan.yaml"]
        words = ["--from", str(hardware.name), "--gpus", str(job.devices), "--task", query.kind, "--model", model]
        return [*words, *(word for setting in settings for word in ("--set", setting))]

    def answer(self, report: Callable[[Results], object], stopped: Callable[[], bool]) -> Results:
        query = self.stated()

        def tell(migration: Migration) -> None:
            report(self._results(migration, query))

        return self._results(migrate(query, self.catalog, self.machine, tell, stopped), query)

    def stated(self) -> MigrationQuestion:
        """Return the question of the engine; raises CapacityError where a part of it makes no sense."""
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

    def _results(self, migration: Migration, query: MigrationQuestion) -> Results:
        source = _Offers(self, query, migration)
        return results_of(migration, query.plan, self._numerics, source, shows_all=self._texts["shown"] == ALL)

    @property
    def _numerics(self) -> Mapping[str, object]:
        return {precision_path(self.plan): self._texts["precision"]} if self._texts.get("precision", OWN) != OWN else {}

    @cached_property
    def _fields(self) -> tuple[Field, ...]:
        return parts_of(self.plan, self.catalog, self.given)

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {part.key: part.text for part in self._fields}


@dataclass(frozen=True)
class _Offers:
    """The offers that were compared, which can explain themselves and leave the program."""

    question: OffersQuestion
    query: MigrationQuestion
    migration: Migration

    def explained(self, row: ResultRow, key: str) -> ExplanationText:
        query = self.question
        if "." not in key:
            instance = row.page.key if row.page is not None else ""
            return offer_explanation(self.query, instance, key, query.catalog, query.machine)
        plan = edited(query.plan, row.change, query.catalog).plan
        return explanation_text(explain(plan, key, query.machine, query.catalog))

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
