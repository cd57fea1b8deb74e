"""A job region by region, as plain data and as lines."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.fleet import RegionOffer, Regions
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.units import GIGA, format_money, format_number, format_percent, format_seconds

_HEADS = (
    "region",
    "provider",
    "together",
    "beside",
    "job",
    "data",
    "$/h",
    "count",
    "tok/s",
    "instance",
    "where",
    "price of",
)


def regions_as_dict(found: Regions) -> dict[str, object]:
    """Return a job region by region as plain data, under the names that scripts rely on."""
    data: dict[str, object] = {
        "home": found.home,
        "data_bytes": found.data_bytes,
        "usd_is_of": _period(found),
        "job_seconds": found.seconds,
        "regions": [_offer(each, is_open=found.seconds is None) for each in found.offers],
        "refused": [{"instance": name, "reason": reason} for name, reason in found.refused],
    }
    return {key: to_builtins(value) for key, value in data.items()}


def regions_parts(found: Regions) -> Iterator[Part]:
    """Yield a job region by region, the cheapest first."""
    cheapest, home = found.offers[0], _home(found)
    yield TextPart(f"cheapest in {_place(cheapest)}: {_total(cheapest)} {_words(found)}", "strong")
    is_open = found.seconds is None
    rows = [_row(each, home, is_open=is_open) for each in found.offers]
    heads = [head for head in _HEADS if is_open or head != "tok/s"]
    yield table_part(heads, rows, range(2, len(heads) - 3))
    size = f"{format_number(found.data_bytes / GIGA)} GB of data"
    yield TextPart(f"data: {size} in {found.home.region or 'an unnamed region'} of {found.home.provider}")
    slowest = max((each.data_hours for each in found.offers), default=0.0)
    if slowest > 0:
        yield TextPart(f"elsewhere it arrives after {format_seconds(slowest * 3600.0)}; leaving a region is paid once")
    if any(each.data is None for each in found.offers):
        yield TextPart("n/a: what data costs that leaves its provider is not known")
    for name, reason in found.refused:
        yield TextPart(f"{name}: {reason}", "quiet")


def _period(found: Regions) -> str:
    return "month" if found.seconds is None else "job"


def _words(found: Regions) -> str:
    if found.seconds is None:
        return "a month of 720 hours"
    return f"for a job of {format_seconds(found.seconds)}"


def _home(found: Regions) -> float | None:
    return next((each.total_usd for each in found.offers if each.is_home), None)


def _place(offer: RegionOffer) -> str:
    return f"{offer.place.region or 'any region'} of {offer.place.provider}"


def _total(offer: RegionOffer) -> str:
    return format_money(offer.total_usd)


def _offer(offer: RegionOffer, *, is_open: bool) -> dict[str, object]:
    return {
        "region": offer.place.region,
        "name": offer.name,
        "provider": offer.place.provider,
        "instance": offer.quote.instance,
        "count": offer.count,
        "usd_per_hour": offer.usd_per_hour,
        "usd": offer.usd,
        "data_usd": None if offer.data is None else mean(offer.data.usd),
        "data_hours": offer.data_hours,
        "data_source": None if offer.data is None else offer.data.words,
        "total_usd": offer.total_usd,
        "tokens_per_second": offer.work_per_second if is_open else None,
        "is_home": offer.is_home,
        "payment": offer.quote.payment,
        "price_source": offer.quote.words,
        "price_date": offer.quote.price_date,
        "verified": offer.quote.verified,
    }


def _row(offer: RegionOffer, home: float | None, *, is_open: bool) -> tuple[str, ...]:
    total = offer.total_usd
    beside = "data is here" if offer.is_home else ""
    if not offer.is_home and home and total is not None:
        beside = f"{'+' if total >= home else ''}{format_percent(total / home - 1.0)}"
    quote, day = offer.quote, offer.quote.price_date or ""
    doubts = ("" if quote.verified else "unverified", "" if quote.age.words in day else quote.age.words)
    return (
        offer.place.region or "any",
        offer.place.provider,
        format_money(total),
        beside,
        format_money(offer.usd),
        "n/a" if offer.data is None else format_money(mean(offer.data.usd)),
        format_money(offer.usd_per_hour),
        format_number(offer.count),
        *((format_number(offer.work_per_second),) if is_open else ()),
        quote.instance,
        offer.name,
        ", ".join(filter(None, (day, *doubts))),
    )
