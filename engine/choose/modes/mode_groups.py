"""Modes that make the same plan of a wish, or a plan that another's beats, and what to know of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from capacity_tui.engine.choose.modes.filled import ModePlan
from capacity_tui.engine.estimate import LESS, METRICS, figure
from capacity_tui.engine.keys import Figure, Key

MODEL = Key.MODEL_NAME
THE_PLAN = "the plan"
"""Stands over the one column of a plan that leaves nothing open."""
# Figures by which a plan beats another: it is worse in none of them, and better in one.
COMPARED = (
    Figure.MEMORY_RESERVED_BYTES,
    Figure.TOKENS_PER_SECOND,
    Figure.SAMPLES_PER_SECOND,
    Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
    Figure.REQUESTS_PER_SECOND,
    Figure.COST_USD_PER_MILLION_TOKENS,
)
# Figures that differ by less than this share are the same.
SAME = 0.005


@dataclass(frozen=True, slots=True)
class ModeGroup:
    """Modes of which one column stands for all.

    Attributes:
        plans: the plans that are the same but for what they say of the run while it goes on; never empty.
        beaten: plans of other modes that are better than these in nothing and worse in something.
    """

    plans: tuple[ModePlan, ...]
    beaten: tuple[ModePlan, ...] = ()

    @property
    def shown(self) -> ModePlan:
        """The one that stands for all: the balanced mode's where it is among them."""
        return next((plan for plan in self.plans if plan.mode.id == "balanced"), self.plans[0])

    @property
    def modes(self) -> tuple[str, ...]:
        """The names of all modes that the column stands for."""
        return tuple(plan.mode.title for plan in (*self.plans, *self.beaten))

    @property
    def title(self) -> str:
        """The names of the modes with this plan."""
        return " = ".join(plan.mode.title for plan in self.plans)

    @property
    def head(self) -> str:
        """What stands over the column."""
        return self.title if self.shown.reasons else THE_PLAN


def single(plan: ModePlan) -> ModeGroup:
    """Return a plan that stands by itself."""
    return ModeGroup((plan,))


def mode_groups(columns: Sequence[ModePlan]) -> tuple[ModeGroup, ...]:
    """Return the modes of a comparison, those with the same plan, or a plan that another beats, as one."""
    same: list[list[ModePlan]] = []
    for column in columns:
        group = next((group for group in same if group[0].settings == column.settings), None)
        if group is None:
            same.append([column])
        else:
            group.append(column)
    # The balanced mode's plan is the answer wherever no mode is named: its column stays.
    beaten_by = {
        place: None
        if any(plan.mode.id == "balanced" for plan in group)
        else next((by for by, other in enumerate(same) if by != place and beats(other[0], group[0])), None)
        for place, group in enumerate(same)
    }
    return tuple(
        ModeGroup(
            tuple(group),
            tuple(plan for other, by in beaten_by.items() if by == place for plan in same[other]),
        )
        for place, group in enumerate(same)
        if beaten_by[place] is None
    )


def beats(one: ModePlan, other: ModePlan) -> bool:
    """Whether a plan for the same job is better than another in some figure and worse in none."""
    if one.plan.model != other.plan.model:
        return False
    better = False
    for key in COMPARED:
        mine, theirs = figure(one.estimate, key).number, figure(other.estimate, key).number
        if mine is None or theirs is None:
            if mine is not theirs:
                return False
            continue
        gain = (theirs - mine) if METRICS[key].better == LESS else (mine - theirs)
        if gain < -SAME * abs(theirs):
            return False
        better = better or gain > SAME * abs(theirs)
    return better


def remarks(groups: Sequence[ModeGroup]) -> Iterator[str]:
    """Yield what to know of the columns as a whole: which modes are the same, and whether the jobs are."""
    for group in groups:
        if not group.shown.reasons:
            yield f"{group.title}: nothing is open"
        elif len(group.plans) > 1:
            yield f"{group.title}: the same settings suit them"
        if group.beaten:
            yield f"{', '.join(plan.mode.title for plan in group.beaten)}: no better in anything than {group.title}"
    if any(MODEL in group.shown.reasons for group in groups):
        yield "the model is open, so each mode takes another: the columns are different jobs"
