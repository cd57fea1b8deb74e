"""The words of a line that are money: what hardware costs, is paid at most, is bought for; and times taken so far."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import JOB_LIMITS, Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL
from capacity_tui.engine.plan.line.lexicon.quantities import (
    OF_ENERGY,
    OF_ONE,
    SPANS,
    currency_of,
    duration_of,
    is_of_no_rate,
    sum_of,
)
from capacity_tui.engine.plan.line.lexicon.question_words import CHEAPEST, MANY, Question, Questions
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, TRAIN, Assumption, Meaning
from capacity_tui.engine.plan.line.questions import OF_ALL, OF_BOX, clouds_in, days_until, price_in
from capacity_tui.engine.plan.line.recognition.load_values import TOKENS_READ, LoadValues
from capacity_tui.engine.plan.line.rented_time import DAY_HOURS, hours_a_day, lasts
from capacity_tui.engine.units import HOUR_SECONDS, format_energy, format_money, parse_quantity

_PARTS_IN_A_TIME = re.compile(r"\d[\d.]* ?([a-z]+/[a-z]+)", re.IGNORECASE)  # 2s/it, 1.3 it/s, 45 min/epoch
_IN_USE = re.compile(r"\d[\d.]*\s?(?:[gm]i?b?)?/\d[\d.]*\s?[gm]i?b?", re.IGNORECASE)  # 31.2/31.5 GB
_MEASURED = ", as measured"  # What took so long
A_SPAN = re.compile(r"\d[\d.,]*[kKmM]?/([a-z]+)")  # 40k/month
_FAR_FROM_OFFERS = 4  # Times the cheapest offer, or part of it, that hardware of the line hardly costs
_PAID_BY = ("h", "mo", "y")  # Spans of sums that are limited; requests of other spans may be as well
_FRACTION, _FEWEST_TO_BUY = re.compile(r"\d+\.\d"), 100  # Dollars of an hour, and those that hardware is bought for
_RATE = "requests/"  # What so much a span of time is read as where no word says what it counts
_SEQUENCES = 512  # Tokens of which lengths of sequences are several, and sums seldom
_OF_A_SERVICE = ", of a service with models of its own; compare it with what the plan costs"
_HOURS_OF_DEVICES = "gpu_hours"  # What limits call them
_RENTED = "machines to rent are compared: name hardware that may be owned, as 2x3090, for a plan of it"
_TO_BUY = "to buy; what hardware is bought for is not compared: say what it may cost an hour or a month, as $2/h"
_FARTHEST = 5  # Words between a sum and what is bought for it


class MoneyWords(LoadValues):
    """A line whose words are being recognized, and those of them that are money, or times that something took."""

    def _other_service(self) -> None:
        """Leave out a service that a model is compared with, and what it costs: ``cheaper than gpt-4o at $2k/mo``."""
        words = vocabulary()
        others, before = words.closed | words.services, words.comparing | words.priced | words.both
        spans = [range(at, at + few) for at in range(len(self._tokens)) for few in (3, 2, 1)]
        spans = [span for span in spans if key_of(self._span(span.start, len(span))) in others]
        for span in spans if spans and any(self._models()) else ():
            if self._is_number_at(span.start - 1):
                continue  # 50k gpt-4 samples
            sums = (at for at in self._clause_of(span.start) if (sum_of(self._tokens[at].text) or ("", 1))[1] != 1)
            for start, end in ((span.start, span.stop), *((at, at + 1) for at in sums)):  # $2/h is hardware's
                first = start
                while first and key_of(self._span(first - 1, 1)) in before:
                    first -= 1  # vs the api
                is_known = key_of(self._span(start - 1, end - start + 1)) in words.remarks  # private chatgpt
                if self._is_free(first, end - first) and not is_known:
                    why = f"left out: {self._span(first, end - first)}{_OF_A_SERVICE}"
                    self._take(first, end - first, Meaning(why=why))

    def _clause_of(self, index: int) -> range:
        """Return where the words stand between the marks around one."""
        ends = [0, *(at + 1 for at, token in enumerate(self._tokens) if token.ends), len(self._tokens)]
        return next(range(start, end) for start, end in pairwise(ends) if start <= index < end)

    def _of_no_rate(self, index: int) -> tuple[int, Meaning] | None:
        """Refuse a sum in a currency whose rate is not known: ``500 cad a month``, but not ``500 cad drawings``."""
        words = vocabulary()
        is_noun = index + 2 < len(self._tokens) and self._counts_something(index + 1)
        is_noun &= key_of(self._span(index + 2, 1)) not in words.money | words.totals
        number = next((at for at in (index, index + 1) if self._is_number_at(at)), None)
        named = None if number is None else self._count_of(number)
        is_sum = named is None or key_of(named.name) in words.money or "/" in named.name  # jpy 5000 a month
        for count in (1, 2) if is_sum and number is not None and not is_noun else (1,):  # no cad 10k samples
            text = self._span(index, count)
            if self._is_free(index, count) and is_of_no_rate(text):
                hint = "write dollars, euros or pounds"
                return count, Meaning(fault=PlanError("no rate of this currency is known here", text, hint))
        return None

    def _sign_sums(self) -> None:
        """Write the sign of sums that have none: ``h100 at 2.49/hr``, ``under 25k a month``, ``a gpu under 1500``."""
        for index, token in enumerate(self._tokens):
            if self._is_free(index) and self._is_paid_elsewhere(index):
                count = 1 + int(self._span(index + 1, 1).startswith(_RATE))
                why = f"left out: {self._span(index, 1)} for something else than hardware"
                self._take(index, count, Meaning(why=why))
            elif self._is_free(index) and self._is_rate_or_sum(index):
                text = f"{token.text} {self._written(index + 1)}"
                hint = f"write ${token.text} of money, or {token.text} requests"
                self._take(index, 2, Meaning(fault=PlanError("so much of what?", text, hint)))
            elif self._is_free(index) and (signed := self._sum_at(index)):
                self._tokens[index] = replace(token, text=signed)
                self._signed.add(index)

    def _is_rate_or_sum(self, index: int) -> bool:
        """Whether so much a span of time may be a price or requests, as in ``an h100 at 3000 a month``."""
        is_a_span = self._is_number_at(index) and self._span(index + 1, 1) in {f"{_RATE}{span}" for span in _PAID_BY}
        is_written = is_a_span and self._written(index + 1)[:1] in "ap"  # a month, per month
        named = {start + count for start, (count, taken) in self._taken.items() if hardware.NAME in taken.values}
        return is_written and key_of(self._span(index - 1, 1)) in vocabulary().priced and index - 1 in named

    def _is_paid_elsewhere(self, index: int) -> bool:
        """Whether a sum, or so much a month, is paid for something else, as in ``we pay openai $3000/mo``."""
        text, first = self._tokens[index].text, max(index - _FARTHEST + 1, 0)
        is_a_span = self._is_number_at(index) and self._span(index + 1, 1).startswith(_RATE)
        start = next((at for at in range(index, first, -1) if self._is_apart(at - 1)), first)
        before = (key_of(token.text) for token in self._tokens[start:index])
        is_sum = is_a_span or (sum_of(text) is not None and not text[:1].isdigit())
        return is_sum and not vocabulary().other_costs.isdisjoint(before)

    def _sum_at(self, index: int) -> str:
        """Return the sum that a number without a sign is by what stands near it; empty for others."""
        text, words = self._tokens[index].text, vocabulary()
        before, last = (key_of(self._span(max(index - few, 0), int(index >= few))) for few in (1, 2))
        after = key_of(self._span(index + 1, 1))
        is_bare = self._is_number_at(index) and self._count_of(index) is None
        span = SPANS.get(after, "") if is_bare else words.spans.get((A_SPAN.fullmatch(text) or ("", ""))[1], "")
        number, dollars = text.partition("/")[0], sum_of(text)
        if span:
            near = {before, last, last + before, after}
            is_limit = not words.money.isdisjoint(near) or (span in _PAID_BY and not words.limiting.isdisjoint(near))
            is_price = span == "h" and hardware.NAME in self._values
            is_likely = bool(_FRACTION.match(number)) or self._is_likely_price(index, parse_quantity(number, ""))
            is_price = is_price and is_likely
            return f"${number}/{span}" if is_limit or is_price else ""
        is_at = before in words.priced or self._text[: self._tokens[index].start].endswith("@")
        is_whole = dollars is not None and not dollars[1] and is_at and hardware.NAME in self._values
        if is_whole and dollars is not None and self._is_likely_price(index, parse_quantity(dollars[0], "")):
            return f"{text}/h"  # h100 at 2.5 usd
        is_counted = settings.amount_of(last) not in (None, words.amounts["devices"]) or last in words.timed
        is_counted |= self._counts_something(index)  # the best gpu under 300 watts, temperature at 0.7
        if is_bare and is_at and not is_counted and _FRACTION.match(text) and hardware.NAME in self._values:
            return f"${text}/h" if self._is_likely_price(index, parse_quantity(text, "")) else ""
        is_counted |= is_bare and settings.at_least(text, 1) and parse_quantity(text, "") % _SEQUENCES == 0  # max 4096
        is_sum = before in words.limiting and not is_counted and self._asks_for_hardware()
        is_named = self._counts_something(index)  # a gpu under 300 watts
        is_sum |= (before in words.limiting or before in ("for", "at")) and self._is_bought(index) and not is_named
        if is_bare and self._is_credit(index):
            return f"${text}"
        return f"${text}" if is_bare and is_sum and settings.at_least(text, _FEWEST_TO_BUY) else ""

    def _is_credit(self, index: int) -> bool:
        """Whether a number is of what a provider lets be spent, as in ``25k in aws credits``."""
        words, behind = vocabulary(), [key_of(self._span(at, 1)) for at in range(index + 1, index + 4)]
        few = next((at for at, key in enumerate(behind) if key in words.credits), None)
        return few is not None and (words.clouds.keys() | words.within).issuperset(behind[:few])

    def _asks_for_hardware(self) -> bool:
        questions = Questions(self._text, self._tokens).all()
        is_asked = any(question.field == hardware.NAME or question.kind == CHEAPEST for question in questions)
        return hardware.NAME not in self._values and is_asked

    def _is_bought(self, index: int) -> bool:
        """Whether words near a sum say that something is bought for it."""
        near = [key_of(token.text) for token in self._tokens[max(index - _FARTHEST, 0) : index + 3]]
        return not vocabulary().buying.isdisjoint((*near, *map("".join, pairwise(near))))

    def _is_small(self, limit: str) -> bool:
        """Whether a sum of the whole is too little to buy hardware for: ``cheapest gpu under $20``."""
        return parse_quantity(limit.rpartition("=")[2], "") < _FEWEST_TO_BUY

    def _price(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize what each device costs an hour, each machine, or all of them, and what a kWh costs."""
        text, words = self._tokens[index].text, vocabulary()
        if text.endswith(OF_ENERGY) and (dollars := sum_of(text.removesuffix(OF_ENERGY))) is not None:
            return 1, Meaning(f"${dollars[0]} a kWh", {Key.PRICING_USD_PER_KWH: dollars[0]}, self._exchanged(index))
        price, how = price_in(self._tokens, index) or (0.0, "")
        is_known = hardware.NAME in self._values and (bool(how) or self._is_likely_price(index, price))
        if not price or not (how == OF_ONE or is_known):
            return None
        if self._device_price not in (0.0, price):
            fault = PlanError("a price given twice", f"${self._device_price:g} and ${price:g} an hour", "keep one")
            return 1, Meaning(fault=fault)
        self._device_price, self._price_of = price, how
        behind = next((count for count in (1, 2) if key_of(self._span(index + 1, count)) in words.totals), 0)
        return 1 + behind, Meaning(f"${price:g} an hour", why=self._exchanged(index))

    def _bill_of_power(self) -> None:
        """Say what devices that serve draw in a month at most where the line says what energy costs."""
        row, price = self._catalog.accelerators.get(str(self._values.get(hardware.NAME))), Key.PRICING_USD_PER_KWH
        watts = self._values.get(f"{hardware.SPEC}.tdp_w", row and row.tdp_w)
        if self._task != INFER or price not in self._values or not watts:
            return
        devices, hours = self._degree(hardware.DEVICES), vocabulary().adverbs["monthly"] / HOUR_SECONDS
        energy = devices * float(str(watts)) / 1e3 * hours
        drawn = f"{devices} x {float(str(watts)):g} W for a month: {format_energy(energy)}"
        bill = format_money(energy * float(str(self._values[price])))
        self._assumed.append(Assumption(price, None, f"{drawn}, {bill} at most; hosts and cooling come on top"))

    def _exchanged(self, index: int) -> str:
        """Return what a sum in another currency, or without any, was taken for; empty for dollars."""
        text = self._tokens[index].text
        if index in self._signed:
            return f"{self._written(index)}: {text} of money (requests are requests/h)"
        currency, dollars = currency_of(text), sum_of(text.removesuffix(OF_ENERGY))
        if currency is None or dollars is None:
            return ""
        return f"{text}: ${dollars[0]}, at ${currency.usd:g} a {currency.name} ({currency.source})"

    def _price_of_devices(self) -> None:
        """Make the price of all devices of that of each, of each machine, or of whichever is the nearest to offers."""
        if not self._device_price:
            if not self._price_of_owned():
                self._price_of_provider()
            return
        if hardware.NAME not in self._values:
            hint = "name the hardware that costs so much, or write under $2/h of all of it together"
            self._faults.append(PlanError("a price of which device?", f"${self._device_price:g} an hour", hint))
            return
        counts, ratios = self._priced_counts(), self._price_ratios(self._device_price)
        what = self._price_of if self._price_of in counts else min(ratios, key=lambda of: abs(math.log(ratios[of])))
        self._values.setdefault(hardware.DEVICES, counts[OF_ONE])  # the price is of so many, where it is asked too
        price = self._device_price * counts[what]
        of = {OF_ONE: "for each device", OF_BOX: "for each machine", OF_ALL: f"for all {counts[OF_ONE]} devices"}[what]
        why = f"price: ${price:g} an hour, ${self._device_price:g} {of} (of all: pricing.usd_per_hour=)"
        self._assume(Key.PRICING_USD_PER_HOUR, price, why)

    def _price_of_owned(self) -> bool:
        """Leave out the rent of cards that a line says somebody has, as in ``my own 4090`` and ``a 3090 at home``."""
        words, keys = vocabulary(), [key_of(token.text) for token in self._tokens]
        named = {at for at, (_, meaning) in self._taken.items() if hardware.NAME in meaning.values}
        owning = [(at, few) for at in range(len(keys)) for few in (1, 2) if key_of(self._span(at, few)) in words.owning]
        if self._asks_for_hardware():
            self._taken |= {at: (few, Meaning(why=f"left out: {self._span(at, few)}; {_RENTED}")) for at, few in owning}
        is_owned = bool(owning) or any(keys[at - 1] in words.owned_hardware for at in named if at)
        is_card = self._values.get(hardware.NAME) in self._catalog.accelerators and not clouds_in(self._tokens)
        if not (is_owned and is_card) or self._limits or len(named) > 1:
            return False
        self._assume(
            Key.PRICING_USD_PER_HOUR, 0, "no rent of own hardware; a training tells what its electricity costs"
        )
        return True

    def _price_of_provider(self) -> None:
        """Take the price of the provider that a line names behind devices, as in ``8 h100 on lambda``."""
        clouds, name = clouds_in(self._tokens), str(self._values.get(hardware.NAME))
        is_open = name in self._catalog.accelerators and Key.PRICING_COMMITMENT not in self._values
        is_asked = bool(self._limits) or any(question.kind == MANY for question in self._questions)
        if not is_open or len(clouds) != 1 or (is_asked and hardware.DEVICES not in self._values):
            return
        is_spot, provider, devices = bool(self._values.get(Key.PRICING_SPOT)), clouds[0], self._degree(hardware.DEVICES)
        rows = [row for row in self._catalog.instances_with(name) if row.provider == provider]
        prices = [(row.spot_usd_per_hour if is_spot else row.on_demand_usd_per_hour, row) for row in rows]
        counted = [(price, math.ceil(devices / row.sold_devices), row.id) for price, row in prices if price is not None]
        for index, (count, _) in self._taken.items():
            if vocabulary().clouds.get(key_of(self._span(index, count))) == provider:
                self._taken[index] = count, Meaning()  # a price of one provider stands here
        offers = [(price * machines, machines, f"{machines} x {machine}") for price, machines, machine in counted]
        if hardware.DEVICES not in self._values:  # nobody says that it is all of a machine
            parts = ((price / row.sold_devices, row) for price, row in prices if price is not None)
            offers = [(price, 1, f"each of {row.sold_devices} in {row.id}") for price, row in parts]
        if not offers:
            why = f"no {'spot ' if is_spot else ''}price of {name} at {provider} is known: the price is another's"
            self._assumed.append(Assumption(Key.PRICING_USD_PER_HOUR, None, why))
            return
        dollars, _, machines = min(offers)
        why = f"price: ${dollars:.4g} an hour at {provider}, for {machines} (or give another, as $2/h)"
        self._assume(Key.PRICING_USD_PER_HOUR, round(dollars, 4), why)

    def _priced_counts(self) -> dict[str, int]:
        """Return how many there are of what may cost so much an hour."""
        machine = self._catalog.instances.get(str(self._values[hardware.NAME]))
        devices = self._degree(hardware.DEVICES, 1 if machine is None else machine.sold_devices)
        size = self._degree(hardware.PER_NODE, devices) if machine is None else machine.sold_devices
        return {OF_ONE: devices, OF_ALL: 1, OF_BOX: max(round(devices / size), 1)}

    def _price_ratios(self, price: float) -> dict[str, float]:
        """Return what so much an hour is of the cheapest offer, where it is for what may cost that.

        A machine by name costs it whole, and devices that nobody offers cost it each.
        """
        counts, name = self._priced_counts(), str(self._values[hardware.NAME])
        rows = ((row.on_demand_usd_per_hour or 0, row.sold_devices) for row in self._catalog.instances_with(name))
        offers = [usd / sold for usd, sold in rows if usd]
        if name in self._catalog.instances or not offers:
            return {OF_BOX if name in self._catalog.instances else OF_ONE: 1.0}
        return {of: price * count / counts[OF_ONE] / min(offers) for of, count in counts.items()}

    def _is_likely_price(self, index: int, price: float) -> bool:
        """Whether so much an hour may be what the hardware costs that is counted, or named near it."""
        named = ((at, at + count) for at, (count, taken) in self._taken.items() if hardware.NAME in taken.values)
        is_near = any(start == index + 1 or end in (index, index - 1) for start, end in named)
        is_known = hardware.DEVICES in self._values or is_near
        ratios = self._price_ratios(price).values() if price and is_known else ()
        return any(1 / _FAR_FROM_OFFERS < ratio < _FAR_FROM_OFFERS for ratio in ratios)

    def _limit_loads(self) -> None:
        """Take a limit on time or money for that of all requests; what is served without an end has none."""
        ends, most_hours = Key.INFERENCE_REQUESTS in self._values, self._hours_of_devices
        machine = self._catalog.instances.get(str(self._values.get(hardware.NAME)))
        is_asked = any(question.kind == MANY for question in Questions(self._text, self._tokens).all())
        if machine is not None and self._limits and not is_asked and self._task != INFER:
            self._values.setdefault(hardware.DEVICES, machine.sold_devices)  # all that a machine has
        if most_hours and self._task in (TRAIN, FINETUNE):
            self._limits[len(self._tokens)] = f"{_HOURS_OF_DEVICES}<={most_hours:.6g}"
        elif most_hours:
            amount = vocabulary().amounts["gpuhours"]
            fault = settings.counted(amount, f"{most_hours:g}", self._task, self._model).fault
            self._faults += [] if fault is None else [fault]
        for index, limit in [*self._limits.items()] if self._task == INFER else ():
            figure, sign, most = limit.partition("<=")
            if figure not in JOB_LIMITS or JOB_LIMITS[figure].served == figure:
                continue
            is_served = not ends and (MODEL in self._values or bool(self._purchases))
            text = self._tokens[index].text
            if not ends and figure == "usd":
                self._taken[index] = 1, self._to_buy(index)
                self._limits.pop(index)
            elif is_served and figure == "time" and lasts(self._tokens, index):
                self._taken[index] = 1, Meaning(f"the bill of {text}")
                self._limits.pop(index)
            elif not ends and days_until(self._tokens, index) is not None:
                self._taken[index] = self._taken[index][0], Meaning(why=f"left out: until {text}: serving has no end")
                self._limits.pop(index)
            else:
                self._limits[index] = f"{JOB_LIMITS[figure].served}{sign}{most}"
                hint = "of a job say train or lora; of a load that is served say ttft 1s, tpot 50ms or e2e 8s"
                self._faults += [] if ends else [PlanError("what does this limit?", text, hint)]

    def _hours_a_day(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how many hours of each day hardware is used, as in ``10 hours a day``."""
        used = hours_a_day(self._tokens, index)
        is_partial = used is not None and used[1] < DAY_HOURS
        return None if used is None else (used[0], Meaning(f"used {used[1]:.3g} h a day" if is_partial else ""))

    def _to_buy(self, index: int) -> Meaning:
        """Leave out what hardware is bought for; the cheapest is asked for where none is named."""
        text = self._tokens[index].text
        self._purchases.append(Question(CHEAPEST, Key.HARDWARE_NAME, text, index, index + 1))
        return Meaning(why=f"left out: {text} {_TO_BUY}")

    def _of_the_job(self, limit: str) -> str:
        """Return a limit as one of the whole job: hours of all devices are so many as these have at once."""
        figure, _, most = limit.partition("<=")
        machine = self._catalog.instances.get(str(self._values.get(Key.HARDWARE_NAME)))
        devices = self._degree(Key.HARDWARE_DEVICES, 1 if machine is None else machine.sold_devices)
        return f"time<={float(most) / devices:.4g}h" if figure == _HOURS_OF_DEVICES else limit

    def _percentile(self, text: str) -> Meaning | None:
        share = settings.percentile(text)
        if share is None or self._task == INFER:
            return share
        return settings.unlike(text, "a percentile of latency", self._task)

    def _measured_time(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out how long something took, or a part of it: ``took 7 hours``, ``5 min per epoch``, ``epoch=753s``.

        So are speeds, as ``gave 12 tok/s``, and those that every plan tells, as ``2s/it``.
        """
        words = vocabulary()
        other = self._span(index + 1, 1) if key_of(self._span(index, 1)) in words.comparing | words.both else ""
        is_other = settings.is_time(other) or duration_of(other) is not None
        if is_other and any(taken.why.endswith(_MEASURED) for _, taken in self._taken.values()):
            return 2, Meaning(why=f"left out: {other}{_MEASURED}")  # takes 753 s on cpu vs 2190 s
        spans = (self._span(index, few) for few in (2, 1))
        speed = next(filter(None, map(_PARTS_IN_A_TIME.fullmatch, spans)), None)
        is_speed = speed is not None and key_of(speed[1]) in vocabulary().fillers and not self._is_counted(index)
        if few := speed[0].count(" ") + 1 if speed is not None and is_speed else self._words_in_use(index):
            return few, Meaning(why=f"left out: {self._span(index, few)}{_MEASURED}")
        count = self._count_of(index) if self._is_number_at(index) else None
        is_held = count is not None and count.amount.name in TOKENS_READ and self._is_measured(index, "cache")
        speed_end = count.end if count is not None and (count.amount.reciprocal or is_held) else 0
        key, _, value = self._tokens[index].text.rpartition("=")
        is_time = settings.is_time(value) or duration_of(value) is not None
        is_measured = bool(speed_end or is_time) and (
            is_held or self._is_measured(index, "time") or (self._is_judged() and not self._is_in_clause(index, "due"))
        )
        is_measured |= bool(speed_end) and self._task in (TRAIN, FINETUNE) and not self._is_in_clause(index, "due")
        if speed_end and is_measured:
            return speed_end - index, Meaning(why=f"left out: {self._span(index, speed_end - index)}{_MEASURED}")
        if not is_time:
            return None
        is_per = self._task != INFER and self._span(index + 1, 1) in vocabulary().per and not self._is_apart(index)
        is_per &= self._is_pass(self._span(index + 2, 1))
        few = 3 if is_per and not key else 1
        is_of_part = is_per or (self._task != INFER and (self._is_pass(key) or self._is_of_pass(index)))
        is_limit = self._is_in_clause(index, "due") or self._span(index - 1, 1) == "in"
        if is_of_part and is_limit and not is_measured:
            hint = "say how long all of the training may take, as within 10h"
            return few, Meaning(fault=PlanError("a limit on a part of a training", self._span(index, few), hint))
        left_out = Meaning(why=f"left out: {self._span(index, few)}{_MEASURED}")
        return (few, left_out) if is_of_part or is_measured else None

    def _words_in_use(self, index: int) -> int:
        """Return how many words say how much of a memory is in use, as ``31.2/31.5 GB`` and ``VRAM 20/24gb``."""
        left = len(self._tokens) - index
        few = next((few for few in (2, 1) if few <= left and _IN_USE.fullmatch(self._span(index, few))), 0)
        is_named = "." in self._span(index, few) or key_of(self._span(index - 1, 1)) in vocabulary().asked["memory"]
        return few if few and is_named else 0
