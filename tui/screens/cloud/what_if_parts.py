"""The parts of the question about clouds: the month, how it is paid, the numerics, and which offers are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.fleet.migration import JOB_KINDS, job_kind_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan
from capacity_tui.tui.screens.plan.field_view import field_lines
from capacity_tui.tui.view import Field, Kind

ANY, OWN, FITTING, ALL, NO, YES = "any", "the plan's", "that fit", "all", "no", "yes"
"""What stands for everything there is, for what the plan has, for offers that hold the job, and for all of them."""
_KINDS = {
    "train": "training: a month is a fixed amount of work, which a faster machine ends earlier",
    "finetune": "fine-tuning: the same, with smaller checkpoints",
    "infer": "serving: people wait, so that machines stay up all hours, and nothing runs on spot capacity",
    "batch_infer": "answers that nobody waits for: large batches, spot capacity too",
}
_HOURS = Field(
    *("hours", "Hours a month", "month", "720"),
    kind=Kind.INTEGER,
    unit="1 to 744",
    choices=("40", "80", "160", "240", "320", "480", "600", "720"),
    help="Hours a month that the job runs where it is now. A faster machine does the same work in fewer.",
)
_SPOT = Field(
    *("spot", "Spot", "month", NO),
    kind=Kind.CHOICE,
    choices=(NO, YES),
    help="Whether offers may be paid at spot prices, with the hours that interruptions and lost checkpoints cost. "
    "Serving is never proposed for capacity that may be taken back.",
)
_REGION = Field(
    *("region", "Region", "month", ANY),
    unit="a region or a part of the world",
    choices=(ANY, "us", "europe", "asia"),
    catalogue="region",
    help="Where machines are rented: a region of a cloud, a part of the world, or wherever a price is known. An offer "
    "without a price there is shown with the nearest one and says so.",
    words={ANY: "wherever a price is known"},
)
_COMMITMENT = Field(
    *("commitment", "Commitment", "month", "none"),
    kind=Kind.CHOICE,
    choices=("none", "1y", "3y"),
    help="How long capacity is committed to. Offers without such a price are shown at their price on demand.",
)
_PRECISION = Field(
    *("precision", "Precision", "numerics", OWN),
    kind=Kind.CHOICE,
    help="Numerics that the plan would have on every machine: of training, or of the weights that are served.",
)
_OFFERS = Field(
    *("instances", "Offers of", "offers", ANY),
    unit="names with commas between, a provider, or any",
    help="Which machines are compared: instances with commas between, a provider for all of its own, or any.",
)
_SHOWN = Field(
    *("shown", "Shown", "offers", FITTING),
    kind=Kind.CHOICE,
    choices=(FITTING, ALL),
    help="Offers that hold the job, or the whole catalogue: of those that do not, by how much memory they are short.",
)
_DATA = Field(
    *("data", "Data to move", "offers", ""),
    unit="such as 500GB or 2TB",
    choices=("", "100GB", "1TB", "10TB"),
    help="Data that would have to move along, besides weights and checkpoints: most clouds charge for what"
    " leaves them.",
)


def precision_path(plan: Plan) -> str:
    """Return the field that says the numerics of a plan."""
    return Key.INFERENCE_WEIGHTS if plan.task == "infer" else Key.TRAINING_PRECISION


def parts_of(plan: Plan, catalog: Catalog, said: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the parts of the question about a plan: what was said, and what makes sense at once for the rest.

    Args:
        plan: the plan.
        catalog: facts.
        said: texts by key.
    """
    kind = Field(
        *("kind", "Job", "month", job_kind_of(plan)),
        kind=Kind.CHOICE,
        choices=tuple(JOB_KINDS),
        help="What the job is: it decides what a month's work is, and whether it may be interrupted.",
        words=_KINDS,
    )
    usual = {"spot": YES if plan.pricing.spot else NO, "commitment": plan.pricing.commitment}
    usual |= {"region": plan.pricing.region} if plan.pricing.region else {}
    offers = replace(_OFFERS, choices=(ANY, *_providers(catalog)))
    parts = (_HOURS, _SPOT, _REGION, _COMMITMENT, *_precisions(plan, catalog), kind, offers, _SHOWN, _DATA)
    return tuple(replace(part, text=said.get(part.key, usual.get(part.key, part.text))) for part in parts)


def _precisions(plan: Plan, catalog: Catalog) -> tuple[Field, ...]:
    """Return the part of the numerics, where the plan has a choice."""
    path = precision_path(plan)
    fields = (field for field in field_lines(plan, catalog) if field.key == path)
    return tuple(replace(_PRECISION, choices=(OWN, *field.choices), words=field.words) for field in fields)


def _providers(catalog: Catalog) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.provider for row in catalog.instances.values()))
