"""Advice of the engine as lines that can be taken."""

from __future__ import annotations

from capacity_tui.engine.solve.advice import Offer
from capacity_tui.tui.shown.what_if import Advice, Effect

_FIRST = "memory."


def advice_of(offer: Offer) -> Advice:
    """Return an offer in the words of the screen, what it does to memory before all else."""
    told = sorted(offer.effects, key=lambda effect: not effect.metric.key.startswith(_FIRST))
    effects = []
    for effect in told:
        metric = effect.metric
        # The unit stands behind the value: a name that says it would say it twice.
        says_unit = not metric.brief or metric.brief.endswith(metric.unit)
        name = metric.name if says_unit else metric.brief
        effects.append(Effect(f"{name} {effect.text} {effect.percent}".rstrip(), effect.gain))
    return Advice(offer.title, offer.change, offer.verdict, tuple(effects), offer.caution)
