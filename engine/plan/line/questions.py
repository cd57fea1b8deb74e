"""What a line asks that no plan says: how many, which machine, how large a model, what keeps a limit."""

from __future__ import annotations

import re
from calendar import day_abbr, day_name, month_abbr, month_name, monthrange
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import pairwise, permutations

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import ON_HOST, Figure, Key
from capacity_tui.engine.plan.line.lexicon.quantities import OF_ONE, duration_of, sum_of
from capacity_tui.engine.plan.line.lexicon.question_words import (
    CHEAPEST,
    COST,
    DEVICES,
    FASTEST,
    HARDWARE,
    LENGTHS,
    LONG,
    MANY,
    MODEL,
    MOST,
    MOST_WORDS,
    MUCH,
    WHICH,
    Question,
)
from capacity_tui.engine.plan.line.lexicon.setting_words import is_year
from capacity_tui.engine.plan.line.lexicon.tokens import Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import INFER, TRAIN, Asked
from capacity_tui.engine.units import parse_quantity

_LOADS = (
    Key.INFERENCE_USERS,
    Key.INFERENCE_REQUEST_RATE,
    Key.INFERENCE_TTFT_SECONDS,
    Key.INFERENCE_TPOT_SECONDS,
    Key.INFERENCE_REQUEST_SECONDS,
)
_LATENCIES = frozenset(_LOADS[2:])
_REPLICAS = Key.PARALLELISM_DP
_OF_PRICE = frozenset({HARDWARE, DEVICES, Key.HARDWARE_PER_NODE, Key.TASK})  # All that a price of hardware says
_OF_RUN = frozenset({Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_MICRO_BATCH, Key.TRAINING_EPOCHS, Key.TRAINING_STEPS})
_RATES = frozenset({Key.INFERENCE_CONCURRENCY, Key.INFERENCE_REQUEST_RATE})  # Every plan tells its throughput
_ANSWERED = _RATES | {"", HARDWARE, DEVICES, MODEL}
"""What nothing is said of where it is asked for and not solved; how many there are is said of them all."""
_OF_NAMED = {MOST: {MODEL}, WHICH: {HARDWARE, DEVICES}}  # What is asked for by words of a kind beside one that is named
_FAR = 3  # Words between one that leaves a provider and its name, as in ``not on any aws``
_IN_LETTERS = re.compile(r"[\d.]+[dwy]", re.IGNORECASE)
OF_BOX, OF_ALL, OF_ANY = "machine", "all", "any"  # What costs so much an hour
_THAN = "than"  # Behind a sum it compares, as in ``$2/h than an a100``
SMALLEST, BETWEEN = "smallest", "between"
_BOUNDS = ("below", "at most", "above", "at least", BETWEEN)  # Groups of words beside the size of a model
_OR, _BEHIND = {"or less": "at most", "or more": "at least"}, 2  # What two words behind a size make of it
_LONGEST_NOUN = 5  # Words between one that asks for a model and the last that says which, as in ``best open moe model``
_DAY = re.compile(r"([1-9]|[12]\d|3[01])(?:st|nd|rd|th)?")
_MONTHS = [*zip(map(str.casefold, month_name[1:]), map(str.casefold, month_abbr[1:]), strict=True)]
_WEEKDAYS = [*zip(map(str.casefold, day_name), map(str.casefold, day_abbr), strict=True)]
_LEAP_YEAR, _YEARS = 2024, 5  # One that has every day, and how many years have one of each
HALF = "half"  # A part of the layers that nobody counted


def price_in(tokens: Sequence[Token], index: int) -> tuple[float, str] | None:
    """Return the dollars that hardware costs an hour, and how that is said; None for other words and for a limit.

    It is said of one device (``$2/gpuh``), of a machine (``the box is $18/h``), of all (``$18/h total``), of any of
    these (``at $2/h``), or not at all, with an empty text.
    """
    dollars_named, words = sum_of(tokens[index].text), vocabulary()
    if dollars_named is None or not dollars_named[1]:
        return None
    before = [key_of(token.text) for token in tokens[max(index - 3, 0) : index]]
    behind = [key_of(token.text) for token in tokens[index + 1 : index + 4]]
    later = tokens[index + 1 : index + 5]
    number = next((at for at, token in enumerate(later) if token.text[:1].isdigit() or sum_of(token.text)), None)
    start = len(behind) if number is None else words.start_of([key_of(token.text) for token in later[:number]])
    is_apart = number is None or (0 < start <= number and later[start - 1].ends)
    ends = behind[: start - int(not is_apart)]  # at $2/h, max 3 days, and at $2/h, a budget of 500
    near = {*before[-2:], "".join(before[-2:]), *({*ends[:1], "".join(ends[:2])} - {_THAN})}
    if not words.limiting.isdisjoint(near) or tokens[index].text[0] in "<≤":
        return None
    dollars = parse_quantity(dollars_named[0], "") / dollars_named[1]
    if tokens[index].text.endswith(OF_ONE):
        return dollars, OF_ONE
    if not tokens[index].ends and not words.totals.isdisjoint((*behind[:1], "".join(behind[:2]))):
        return dollars, OF_ALL
    is_joined = behind[:1] and behind[0] in words.joints
    if not words.boxes.isdisjoint((*before, *(behind if is_joined else ()))):
        return dollars, OF_BOX
    is_priced = not words.priced.isdisjoint(before[-2:])
    return (dollars, OF_ANY if is_priced else "") if is_priced or dollars_named[1] == 1 else None  # $4k a month


def limit_in(tokens: Sequence[Token], index: int) -> str | None:
    """Return the limit that a word of a line is, as ``time<=30d`` or ``usd<=500``; None for other words."""
    text, words = tokens[index].text, vocabulary()
    key, _, value = text.rpartition("=")
    text = value if key_of(key) in words.money else text.lstrip("<≤=")  # budget=$2000
    dollars_named = sum_of(text) or (sum_of(f"${text}") if _is_money(tokens, index) else None)
    if dollars_named is not None:
        dollars, hours = dollars_named
        rate = parse_quantity(dollars, "")
        return f"{Figure.COST_USD_PER_HOUR}<={rate / hours:.4g}" if hours else f"usd<={dollars}"
    before = tokens[index - 1].text if index else ""
    deadline = words.deadlines.get(key_of(text)) or words.deadlines.get(key_of(f"{before} {text}"))
    if deadline is not None:
        return f"time<={deadline}"
    span = duration_of(text)
    near = (*tokens[max(index - 2, 0) : index], *tokens[index + 1 : index + 2])
    # 3d may be three dimensions, 2w watts; 72h and 3 days are times.
    is_limit = _IN_LETTERS.fullmatch(text) is None or any(token.text.casefold() in words.within for token in near)
    return f"time<={span}" if span is not None and is_limit else None


def days_until(tokens: Sequence[Token], index: int) -> tuple[int, int] | None:
    """Return the days from today to a day, and how many words name it: ``20 december``, ``friday``; None for others."""
    today, name = datetime.now(UTC).date(), tokens[index].text.casefold()
    weekday = next((at for at, names in enumerate(_WEEKDAYS) if name in names), None)
    if weekday is not None:
        dated = days_until(tokens, index + 1) if index + 1 < len(tokens) else None  # fri 20 december
        few = (weekday - today.weekday()) % len(_WEEKDAYS) or len(_WEEKDAYS)
        return (few, 1) if dated is None or dated[1] == 1 else (dated[0], 3)
    for first, second in permutations([token.text.casefold() for token in tokens[index : index + 2]], 2):
        day = _DAY.fullmatch(first)
        month = next((at for at, names in enumerate(_MONTHS, 1) if second in names), 0)
        if day is not None and month and (of := int(day[1])) <= monthrange(_LEAP_YEAR, month)[1]:
            years = (year for year in range(today.year, today.year + _YEARS) if of <= monthrange(year, month)[1])
            days = ((date(year, month, of) - today).days for year in years)
            return next(((few, 2) for few in days if few > 0), None)
    return None


def _is_money(tokens: Sequence[Token], index: int) -> bool:
    """Whether words beside a number say that it is a sum, as in ``a budget of 500`` and ``40k/month to spend``."""
    words, keys = vocabulary(), [key_of(token.text) for token in tokens]
    start = words.start_of(keys[:index])
    behind = keys[index + 1 : index + 2] if keys[index + 1 : index + 2] != ["to"] else keys[index + 2 : index + 3]
    is_near = bool(start and keys[start - 1] in words.money)
    is_near |= not words.money.isdisjoint(behind) and not is_year(tokens[index].text)  # our 2025 budget
    is_counted = bool(behind) and behind[0] in words.amounts  # $2000 budget, 50M tokens
    return is_near and not is_counted and tokens[index].text[:1].isdigit()


def asked_of(
    questions: Sequence[Question],
    tokens: Sequence[Token],
    hardware: Collection[int],
    task: str,
    values: Mapping[str, object],
    limits: tuple[str, ...],
) -> Asked | None:
    """Return what a line asks for.

    Args:
        questions: what its words ask.
        tokens: its words.
        hardware: where words stand that name hardware.
        task: what is done.
        values: what it says of the plan.
        limits: what it says that must hold.
    """
    kinds = {question.kind for question in questions}
    cheapest = Figure.COST_USD_OF_ALL_REQUESTS if Key.INFERENCE_REQUESTS in values else _cheapest(task)
    goal = _fastest(task) if FASTEST in kinds else cheapest if kinds & {CHEAPEST, COST} else ""
    for question in questions:
        kind, field = question.kind, question.field
        is_open = DEVICES not in values and (limits or HARDWARE not in values or not values.keys().isdisjoint(_LOADS))
        if kind == WHICH and not field and COST in kinds:
            continue  # what does an h100 cost
        solve = _solved(kind, DEVICES if field == _REPLICAS and is_open else field, values)
        if solve and (limits or solve not in LENGTHS):
            is_least = solve == HARDWARE and not vocabulary().sizes_asked[SMALLEST].isdisjoint(question.words.split())
            is_most = solve == MODEL or (kind in (MANY, MOST) and solve not in (HARDWARE, DEVICES, _REPLICAS))
            wanted = "" if is_most else Figure.MEMORY_CAPACITY_BYTES if is_least else goal
            return Asked(solve, limits, wanted, question.words, clouds_in(tokens))
    if task == TRAIN and MODEL in values and HARDWARE in values and limits and values.keys().isdisjoint(LENGTHS):
        return Asked(Key.TRAINING_TOKENS, limits, "", "how many tokens keep the limits")
    if HARDWARE in values and task == INFER and _offloads(tokens, values):
        return Asked(Key.INFERENCE_GPU_LAYERS, limits, goal, "as many layers on the device as fit")
    if HARDWARE in values:
        is_one = any(key_of(tokens[index - 1].text) in vocabulary().single for index in hardware if index)
        fields = {question.field for question in questions if question.kind == MANY}
        is_other = not fields <= {"", HARDWARE, DEVICES, _REPLICAS}
        is_counted = DEVICES in values or is_one or is_other or task == INFER
        return Asked(DEVICES, limits, goal, "how many devices keep the limits") if limits and not is_counted else None
    is_loaded = task == INFER and any(load in values for load in _LOADS)
    if MODEL in values and (limits or goal or is_loaded):
        return Asked(HARDWARE, limits, goal or cheapest, "the cheapest machine that does this", clouds_in(tokens))
    return None


def clouds_in(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the providers that a line names: ``on gcp``; of one that it only leaves, all others: ``not on aws``."""
    words, keys = vocabulary(), [key_of(token.text) for token in tokens]
    named: dict[str, None] = {}
    left, is_left = set[str](), False
    for at in (at for at, key in enumerate(keys) if key in words.clouds):
        far = max(at - _FAR, 0)
        ends = (start for start in range(at, far, -1) if tokens[start - 1].ends or keys[start - 1] in words.clouds)
        start = next(ends, far)
        before = keys[start:at]
        is_more = keys[max(start - 1, 0)] in words.clouds and (words.both | words.comparing).issuperset(before)
        near = {*before, *map("".join, pairwise(before))}
        behind = [key for key in keys[at + 1 : at + 3] if key not in words.between]  # azure is fine
        is_contrast = len(before) == 1 and words.contrasting.issuperset(before)  # not aws but azure
        is_meant = is_left and (is_contrast or not words.permitting.isdisjoint(behind[:1]))
        is_more &= bool(start)
        is_left = not is_meant and (
            is_left if is_more else bool((words.given_up | words.negations | words.leaving) & near)
        )
        (left.add if is_left else named.setdefault)(words.clouds[keys[at]])
    others = dict.fromkeys(provider for provider in words.clouds.values() if left and provider not in left)
    return tuple(named or others)


def _offloads(tokens: Sequence[Token], values: Mapping[str, object]) -> bool:
    """Whether words say that layers lie in host memory, and none how many."""
    keys = [key_of(token.text) for token in tokens]
    spans = ("".join(keys[at : at + count]) for at in range(len(keys)) for count in range(1, MOST_WORDS + 1))
    paths = (vocabulary().needs.get(span, ("", ""))[0] for span in spans)
    placed = {*ON_HOST, Key.PARALLELISM_OFFLOAD}
    is_open = HALF not in keys and values.keys().isdisjoint(placed)
    return is_open and Key.INFERENCE_GPU_LAYERS in paths


def unanswered(questions: Sequence[Question], values: Mapping[str, object], asked: Asked | None) -> dict[str, None]:
    """Return the words that ask for what is not solved for, and no plan tells."""
    solved: set[str] = set() if asked is None else {asked.solve}
    solved |= set() if solved.isdisjoint({HARDWARE, DEVICES}) else {HARDWARE, DEVICES, _REPLICAS}
    answered = {kind: _ANSWERED - (paths & values.keys()) for kind, paths in _OF_NAMED.items()} | {MANY: _RATES}
    nouns = vocabulary().asked["memory"].keys()  # which every plan tells
    open_ = [question for question in questions if nouns.isdisjoint(map(key_of, question.words.split()))]
    named = ((question, solved | answered.get(question.kind, _ANSWERED)) for question in open_)
    return dict.fromkeys(question.words for question, others in named if question.field not in others)


def asks_for_model(questions: Iterable[Question]) -> bool:
    """Return whether a line asks which model it is, or how large a one."""
    return any(question.field == MODEL and question.kind in (MOST, MANY, WHICH) for question in questions)


def superlative_at(tokens: Sequence[Token], index: int) -> tuple[str, int]:
    """Return what words ask of several models, and how many words: the most, the smallest, the cheapest, or which."""
    words, sizes = vocabulary(), vocabulary().sizes_asked
    for count in (3, 2, 1):
        key = _key(tokens, index, count)
        asks = words.queries.get(key, "")
        if key in sizes[SMALLEST]:
            return SMALLEST, count
        if key in sizes["best"] or asks in (MOST, CHEAPEST, FASTEST):
            return MOST if key in sizes["best"] else asks, count
        if key in words.choosing | sizes["any"]:
            return WHICH, count
    return "", 0


def nouns_asked(tokens: Sequence[Token], index: int) -> range:
    """Return where words stand that may say of which models one is asked for: up to a joint, a number or a device."""
    words, end = vocabulary(), index
    others = words.joints - {"a", "an", "the"} | {key for key, field in words.asked[WHICH].items() if field != MODEL}
    while end < min(index + _LONGEST_NOUN, len(tokens)) and not (end > index and tokens[end - 1].ends):
        key = key_of(tokens[end].text)
        is_of_kind = key in words.sizes_asked["made for"] and words_of_kind(tokens, end + 1) > 0  # for coding
        is_other = key in others or (key in words.amounts and not words_of_kind(tokens, end))
        if (is_other and not is_of_kind) or key[:1].isdigit():
            break
        end += 1
    return range(index, end)


def words_of_kind(tokens: Sequence[Token], index: int) -> int:
    """Return how many words name a kind of models; 0 where none does."""
    return next((few for few in (3, 2, 1) if _key(tokens, index, few) in vocabulary().model_kinds), 0)


def plain_size(word: str) -> str:
    """Return a size without the sign before it: 8b of ``<8b`` and ``sub-8b``."""
    begins = (f"{below}-" for below in vocabulary().sizes_asked["below"] if below.isalpha())
    return word.lstrip("<≤=").removeprefix(next(filter(word.startswith, begins), ""))


def bound_at(tokens: Sequence[Token], index: int, text: str) -> tuple[str, int, int] | None:
    """Return what a size bounds, how many words say that, and where the word is that they are of; None for none.

    As in ``models with less than 8b`` and ``llm <8b``.
    """
    sizes, token = vocabulary().sizes_asked, tokens[index]
    sign = token.text[: len(token.text) - len(plain_size(token.text))].rstrip("-")
    sign = sign or text[max(token.start - 1, 0) : token.start]
    keys = {few: _key(tokens, index - few, few) for few in (3, 2, 1) if few <= index} | {0: sign}
    bound = next(((few, name) for few, key in keys.items() for name in _BOUNDS if key in sizes[name]), None)
    behind = _key(tokens, index + 1, _BEHIND)
    bound = bound or next(((0, name) for other, name in _OR.items() if behind in sizes[other]), None)
    if bound is None:
        return None
    few, name = bound
    noun = index - few - 1
    while noun > 0 and key_of(tokens[noun].text) in sizes["describing"]:
        noun -= 1
    return name, few, noun


def _key(tokens: Sequence[Token], index: int, count: int) -> str:
    """Return the key of so many words; empty where the line ends before."""
    is_whole = index + count <= len(tokens)
    return key_of(" ".join(token.text for token in tokens[index : index + count])) if is_whole else ""


def unclear(
    questions: Sequence[Question], tokens: Sequence[Token], task: str, values: Mapping[str, object], asked: Asked | None
) -> PlanError | None:
    """Return what to say of a line that asks for two unknowns, or for a price that nothing is done for.

    Args:
        questions: what its words ask.
        tokens: its words.
        task: what is done; empty where no word says it.
        values: what it says of the plan.
        asked: what is solved for.
    """
    is_optimal = any(key_of(token.text) in vocabulary().optimal for token in tokens)
    if is_optimal and asked is None and MODEL not in values and Key.TRAINING_TOKENS not in values:
        hint = "say its parameters, as train 7b chinchilla-optimal; docs/growth.md tells how sizes and tokens grow"
        return PlanError("the best size for a budget is no plan", "a model of which size?", hint)
    lengths = (question for question in questions if question.field in LENGTHS and values.keys().isdisjoint(LENGTHS))
    is_open = asked is not None and (asked.solve == HARDWARE or asked.solve in LENGTHS) and HARDWARE not in values
    if is_open and (length := next(lengths, None)) is not None:
        hint = "name the hardware, as 64xh100, which says how much its limits allow"
        return PlanError(f"{length.words}, and on which hardware?", "a line asks for one of them", hint)
    if (asked is None or asked.solve == HARDWARE) and MODEL not in values:
        is_loaded = asked is None and not values.keys().isdisjoint(_LOADS)
        is_for_model = asked is not None and any(question.field == MODEL for question in questions)
        is_to_buy = any(question.kind == CHEAPEST for question in questions) and values.keys().isdisjoint(_LOADS)
        is_bare = values.keys() <= {Key.TASK}  # memory for training and inference
        is_for_model |= asked is not None and (is_to_buy or is_bare)  # $3000 budget for a local llm box
        if HARDWARE not in values and (is_loaded or is_for_model):
            hint = "name the model, as llama-3.1-70b for 350 people under $10k a month, or the hardware, as 2xl40s"
            return PlanError("which model, and on which hardware?", "a line asks for one of them", hint)
        costs = (question for question in questions if question.kind in (COST, MUCH) and question.field not in LENGTHS)
        if not task and any(costs) and values.keys() <= _OF_PRICE:  # 8 h100 for a week, how much
            hint = "name what runs there, as llama-3.1-8b; `capacity-tui hardware` and Cloud list prices"
            return PlanError("a price alone is no plan", tokens[0].text, hint)
        kinds = (vocabulary().queries.get(_key(tokens, at, few)) for at in range(len(tokens)) for few in (1, 2))
        given = values.keys() - _OF_PRICE
        is_run = task in ("", TRAIN) and given <= _OF_RUN  # batch 512 on 8 v100, how long do 50 epochs take
        is_open = is_run or not (task or given)
        if (
            asked is None
            and HARDWARE in values
            and is_open
            and not {LONG, MANY, *([MUCH] if given else [])}.isdisjoint(kinds)
        ):
            hint = "name it, as lora llama-3.1-8b; `capacity-tui models` lists what is known"
            return PlanError("which model?", "a line asks about one that it does not name", hint)
    return None


def asks_for_nodes(tokens: Sequence[Token]) -> bool:
    """Return whether a line asks how many nodes there are to be, so that its devices are those of one."""
    keys = [key_of(token.text) for token in tokens]
    many = next((at for at in range(len(keys)) if vocabulary().queries.get("".join(keys[at : at + 2])) == MANY), None)
    nodes = vocabulary().amounts["nodes"]
    near = [] if many is None else keys[many + 2 : many + 5]
    return nodes in map(vocabulary().amounts.get, near[:2]) or not vocabulary().racks.keys().isdisjoint(near)


def _solved(kind: str, field: str, values: Mapping[str, object]) -> str:
    """Return the field that is solved for where words ask for one; empty where the line says it already."""
    has_hardware = HARDWARE in values
    if field in (HARDWARE, DEVICES):
        return HARDWARE if not has_hardware else DEVICES if field == DEVICES and DEVICES not in values else ""
    if field == Key.INFERENCE_CONCURRENCY and values.keys().isdisjoint(_LATENCIES):
        return ""  # every plan says its throughput
    if field:
        return field if field != MODEL or (has_hardware and MODEL not in values) else ""
    return MODEL if kind in (MOST, WHICH) and has_hardware and MODEL not in values else ""


def _cheapest(task: str) -> str:
    """Return the goal of least money: machines that serve are paid by the hour, a job as a whole."""
    return Figure.COST_USD_PER_HOUR if task == INFER else "usd"


def _fastest(task: str) -> str:
    return "tpot" if task == INFER else "time"
