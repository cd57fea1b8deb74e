"""What a line asks that no plan says: how many, which machine, how large a model, what keeps a limit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan.line.lexicon.quantities import OF_ONE, duration_of, sum_of
from capacity_tui.engine.plan.line.lexicon.tokens import Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import INFER, TRAIN, Asked
from capacity_tui.engine.units import parse_quantity

MODEL, HARDWARE, DEVICES = Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES
_SEQUENCE, _BATCH, _LENGTH = "sequence", "batch", "length"
_OF_SERVING = {_SEQUENCE: Key.INFERENCE_PROMPT_TOKENS, _BATCH: Key.INFERENCE_BATCH, _LENGTH: ""}
_OF_TRAINING = {_SEQUENCE: Key.TRAINING_SEQ_LEN, _BATCH: Key.TRAINING_MICRO_BATCH, _LENGTH: Key.TRAINING_TOKENS}
_LENGTHS = frozenset({Key.TRAINING_TOKENS, Key.TRAINING_EPOCHS, Key.TRAINING_STEPS})  # Of a job that has a limit
_OF_LENGTH = _LENGTHS | {Key.TRAINING_SAMPLES}
_REPLICAS = Key.PARALLELISM_DP
_LOADS = (
    Key.INFERENCE_USERS,
    Key.INFERENCE_REQUEST_RATE,
    Key.INFERENCE_TTFT_SECONDS,
    Key.INFERENCE_TPOT_SECONDS,
    Key.INFERENCE_REQUEST_SECONDS,
)
_LATENCIES = frozenset(_LOADS[2:])
_NUMBERED = frozenset({_SEQUENCE, _BATCH, Key.TRAINING_ADAPTER_RANK})
_FARTHEST = 4  # Words between one that asks and what it asks for, as in ``how many A100 80GB cards``
_MOST_WORDS = 4
_OF_PRICE = frozenset({HARDWARE, DEVICES, Key.HARDWARE_PER_NODE, Key.TASK})  # All that a price of hardware says
_ENDS = frozenset({"on", "with", "using", "for", "in", "from", "at", "by"})
"""Words behind which nothing is asked for any more."""
_NEVER_ASKED = frozenset({"tokens", "tokens a second", "epochs", "steps", "samples", "TTFT limit", "TPOT limit"})
_HOURS = (["hours"], ["gpuhours"], ["days"], ["gpudays"])  # What devices are counted in, rather than by number
_LAYOUTS = (["parallel"], ["parallelism"])  # Behind model, which is no model then
_NODES = frozenset({"nodes", "servers", "machines", "hosts"})
_ARTICLES = frozenset({"a", "an", "my", "this", "the", "our"})  # Words that say of a device behind them that it is one
_IN_LETTERS = re.compile(r"[\d.]+[dw]", re.IGNORECASE)
CHEAPEST = "cheapest"
OF_BOX, OF_ALL, OF_ANY = "machine", "all", "any"  # What costs so much an hour
HALF = "half"  # A part of the layers that nobody counted
_COST = "cost"
_MANY, _MUCH, _MOST, _WHICH, _FASTEST = "many", "much", "most", "which", "fastest"


def price_in(tokens: Sequence[Token], index: int) -> tuple[float, str] | None:
    """Return the dollars that hardware costs an hour, and how that is said; None for other words and for a limit.

    It is said of one device (``$2/gpuh``), of a machine (``the box is $18/h``), of all (``$18/h total``), of any of
    these (``at $2/h``), or not at all, with an empty text.
    """
    dollars_named, words = sum_of(tokens[index].text), vocabulary()
    if dollars_named is None or dollars_named[1] != 1:
        return None
    before = [key_of(token.text) for token in tokens[max(index - 3, 0) : index]]
    behind = [key_of(token.text) for token in tokens[index + 1 : index + 4]]
    if (
        not words.limiting.isdisjoint((*before[-2:], "".join(before[-2:]), *behind[:1]))
        or tokens[index].text[0] in "<≤"
    ):
        return None
    dollars = parse_quantity(dollars_named[0], "")
    if tokens[index].text.endswith(OF_ONE):
        return dollars, OF_ONE
    if not words.totals.isdisjoint((*behind[:1], "".join(behind[:2]))):
        return dollars, OF_ALL
    is_joined = behind[:1] and behind[0] in words.joints
    if not words.boxes.isdisjoint((*before, *(behind if is_joined else ()))):
        return dollars, OF_BOX
    return dollars, OF_ANY if not words.priced.isdisjoint(before[-2:]) else ""


def limit_in(tokens: Sequence[Token], index: int) -> str | None:
    """Return the limit that a word of a line is, as ``time<=30d`` or ``usd<=500``; None for other words."""
    text, words = tokens[index].text, vocabulary()
    dollars_named = sum_of(text.lstrip("<≤")) or (sum_of(f"${text}") if _is_money(tokens, index) else None)
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


def _is_money(tokens: Sequence[Token], index: int) -> bool:
    """Whether words beside a number say that it is a sum, as in ``a budget of 500`` and ``40k/month to spend``."""
    words, keys = vocabulary(), [key_of(token.text) for token in tokens]
    start = words.start_of(keys[:index])
    behind = keys[index + 1 : index + 2] if keys[index + 1 : index + 2] != ["to"] else keys[index + 2 : index + 3]
    is_near = bool(start and keys[start - 1] in words.money) or not words.money.isdisjoint(behind)
    is_counted = bool(behind) and behind[0] in words.amounts  # $2000 budget, 50M tokens
    return is_near and not is_counted and tokens[index].text[:1].isdigit()


def asked_of(
    tokens: Sequence[Token], hardware: Collection[int], task: str, values: Mapping[str, object], limits: tuple[str, ...]
) -> Asked | None:
    """Return what a line asks for.

    Args:
        tokens: its words.
        hardware: where words stand that name hardware.
        task: what is done.
        values: what it says of the plan.
        limits: what it says that must hold.
    """
    asks = [*_asks(tokens, hardware, task)]
    kinds = {kind for kind, _, _ in asks}
    cheapest = Figure.COST_USD_OF_ALL_REQUESTS if Key.INFERENCE_REQUESTS in values else _cheapest(task)
    goal = _fastest(task) if _FASTEST in kinds else cheapest if kinds & {CHEAPEST, _COST} else ""
    for kind, field, words in asks:
        is_open = DEVICES not in values and (limits or HARDWARE not in values or not values.keys().isdisjoint(_LOADS))
        if kind == _WHICH and not field and _COST in kinds:
            continue  # what does an h100 cost
        solve = _solved(kind, DEVICES if field == _REPLICAS and is_open else field, values)
        if solve and (limits or solve not in _LENGTHS):
            return Asked(solve, limits, "" if solve == MODEL else goal, words)  # of models the largest
    if task == TRAIN and MODEL in values and HARDWARE in values and limits and values.keys().isdisjoint(_OF_LENGTH):
        return Asked(Key.TRAINING_TOKENS, limits, "", "how many tokens keep the limits")
    if HARDWARE in values and task == INFER and _offloads(tokens, values):
        return Asked(Key.INFERENCE_GPU_LAYERS, limits, goal, "as many layers on the device as fit")
    if HARDWARE in values:
        is_one = any(key_of(tokens[index - 1].text) in _ARTICLES for index in hardware if index)
        is_other = any(kind == _MANY and field not in ("", HARDWARE, DEVICES, _REPLICAS) for kind, field, _ in asks)
        is_counted = DEVICES in values or is_one or is_other or task == INFER
        return Asked(DEVICES, limits, goal, "how many devices keep the limits") if limits and not is_counted else None
    is_loaded = task == INFER and any(load in values for load in _LOADS)
    if MODEL in values and (limits or goal or is_loaded):
        return Asked(HARDWARE, limits, goal or cheapest, "the cheapest machine that does this")
    return None


def _offloads(tokens: Sequence[Token], values: Mapping[str, object]) -> bool:
    """Whether words say that layers lie in host memory, and none how many."""
    keys = [key_of(token.text) for token in tokens]
    spans = ("".join(keys[at : at + count]) for at in range(len(keys)) for count in range(1, _MOST_WORDS + 1))
    paths = (vocabulary().needs.get(span, ("", ""))[0] for span in spans)
    is_open = HALF not in keys and values.keys().isdisjoint({Key.INFERENCE_GPU_LAYERS, Key.PARALLELISM_OFFLOAD})
    return is_open and Key.INFERENCE_GPU_LAYERS in paths


def unanswered(
    tokens: Sequence[Token], hardware: Collection[int], task: str, values: Mapping[str, object], asked: Asked | None
) -> dict[str, None]:
    """Return the words that ask how many there are of something, or for the largest model, which is not solved for."""
    solved: set[str] = {Key.INFERENCE_REQUEST_RATE} if asked is None else {asked.solve}  # every plan says its rate
    solved |= set() if solved.isdisjoint({HARDWARE, DEVICES}) else {HARDWARE, DEVICES, _REPLICAS}
    asks = _asks(tokens, hardware, task)
    kinds = {_MANY, _MOST} if MODEL in values else {_MANY}
    named = ((field, words) for kind, field, words in asks if kind in kinds and (kind == _MANY or field == MODEL))
    return dict.fromkeys(words for field, words in named if field and field not in solved)


def asks_for_model(tokens: Sequence[Token], task: str) -> bool:
    """Return whether a line asks which model it is, or how large a one."""
    return any(field == MODEL and kind in (_MOST, _WHICH) for kind, field, _ in _asks(tokens, (), task))


def unclear(tokens: Sequence[Token], task: str, values: Mapping[str, object], asked: Asked | None) -> PlanError | None:
    """Return what to say of a line that asks for two unknowns, or for a price that nothing is done for.

    Args:
        tokens: its words.
        task: what is done; empty where no word says it.
        values: what it says of the plan.
        asked: what is solved for.
    """
    asks = [(kind, field) for kind, field, _ in _asks(tokens, (), task)]
    is_optimal = any(key_of(token.text) in vocabulary().optimal for token in tokens)
    if is_optimal and asked is None and MODEL not in values and Key.TRAINING_TOKENS not in values:
        hint = "say its parameters, as train 7b chinchilla-optimal; docs/growth.md tells how sizes and tokens grow"
        return PlanError("the best size for a budget is no plan", "a model of which size?", hint)
    if (asked is None or asked.solve == HARDWARE) and MODEL not in values:
        if any(field == MODEL for _, field in asks) and HARDWARE not in values and asked is not None:
            hint = "name the hardware, as best model on 2xl40s, or the model, as cheapest gpu for llama-3.1-8b"
            return PlanError("which model, and on which hardware?", "a line asks for one of them", hint)
        if not task and any(kind == _COST for kind, _ in asks) and values.keys() <= _OF_PRICE:
            hint = "name what runs there, as llama-3.1-8b; `capacity-tui hardware` and Cloud list prices"
            return PlanError("a price alone is no plan", tokens[0].text, hint)
    return None


def asks_for_nodes(tokens: Sequence[Token]) -> bool:
    """Return whether a line asks how many nodes there are to be, so that its devices are those of one."""
    keys = [key_of(token.text) for token in tokens]
    many = next((at for at in range(len(keys)) if vocabulary().queries.get("".join(keys[at : at + 2])) == _MANY), None)
    return many is not None and not _NODES.isdisjoint(keys[many + 2 : many + 4])


def _solved(kind: str, field: str, values: Mapping[str, object]) -> str:
    """Return the field that is solved for where words ask for one; empty where the line says it already."""
    has_hardware = HARDWARE in values
    if field in (HARDWARE, DEVICES):
        return HARDWARE if not has_hardware else DEVICES if field == DEVICES and DEVICES not in values else ""
    if field == Key.INFERENCE_CONCURRENCY and values.keys().isdisjoint(_LATENCIES):
        return ""  # every plan says its throughput
    if field and (field not in values or kind == _MUCH) and (field != MODEL or has_hardware):
        return field
    is_model = kind in (_MOST, _WHICH) and has_hardware and MODEL not in values
    return MODEL if is_model else ""


def _is_of_another(key: str) -> bool:
    """Whether a word says that something is counted which is not asked for, as in ``how many tokens/s``."""
    amount = vocabulary().amounts.get(key)
    return key in vocabulary().durations or (amount is not None and amount.name in _NEVER_ASKED)


def _rate(kind: str, key: str, task: str) -> str:
    """Return the rate of requests that a word counts, as ``documents/day``; empty where it counts another thing."""
    amount = vocabulary().amounts.get(key)
    is_rate = amount is not None and amount.fields.get(INFER) == Key.INFERENCE_REQUEST_RATE
    return Key.INFERENCE_REQUEST_RATE if is_rate and task == INFER and kind in (_MANY, _MOST) else ""


def _is_open(keys: Sequence[str], at: int, field: str) -> bool:
    """Whether a noun is asked for: not hours of it, what has a number, or a model that is of hardware or a length."""
    is_numbered = field in _NUMBERED and (_is_number(keys, at + 1) or (at > 0 and _is_number(keys, at - 1)))
    is_other = field == MODEL and "".join(keys[at : at + 2]) in vocabulary().amounts  # max model len
    behind = keys[at + 2 : at + 4] if keys[at + 1 : at + 2] == ["of"] else []
    is_other |= field == MODEL and any(vocabulary().asked["which"].get(key) == HARDWARE for key in behind)
    is_other |= field == MODEL and keys[at + 1 : at + 2] in _LAYOUTS
    return not is_numbered and not is_other and keys[at + 1 : at + 2] not in _HOURS


def _is_number(keys: Sequence[str], index: int) -> bool:
    return keys[index : index + 1] != [] and keys[index][:1].isdigit()


def _cheapest(task: str) -> str:
    """Return the goal of least money: machines that serve are paid by the hour, a job as a whole."""
    return Figure.COST_USD_PER_HOUR if task == INFER else "usd"


def _fastest(task: str) -> str:
    return "tpot" if task == INFER else "time"


def _asks(tokens: Sequence[Token], hardware: Collection[int], task: str) -> Iterator[tuple[str, str, str]]:
    """Yield what words ask: the kind of asking, the field if it is named, and the words themselves."""
    queries, asked = vocabulary().queries, vocabulary().asked
    fields = _OF_SERVING if task == INFER else _OF_TRAINING
    keys = [key_of(token.text) for token in tokens]
    for index in range(len(tokens)):
        for count in range(_MOST_WORDS, 0, -1):
            kind = queries.get("".join(keys[index : index + count]))
            if kind is None or index + count > len(tokens):
                continue
            behind = range(index + count, min(index + count + _FARTHEST, len(tokens)))
            nouns = {} if kind == _COST else asked.get(kind, asked["which"])
            is_end = (at for at in behind if keys[at] in _ENDS or (_is_of_another(keys[at]) and keys[at] not in nouns))
            places: Iterable[int] = range(behind.start, next(is_end, behind.stop))
            needs = not vocabulary().needing.isdisjoint(keys[behind.start : behind.stop])
            needs &= nouns.keys().isdisjoint(keys[behind.start : behind.stop]) and set(hardware).isdisjoint(behind)
            needs &= not any(map(_is_of_another, keys[behind.start : behind.stop]))
            if kind == _MANY and (not behind or keys[behind.start] in _ENDS or needs):  # on H100s, how many do we need?
                places = range(index - 1, max(index - _FARTHEST, -1), -1)
            named = ((at, DEVICES if kind == _MANY and at in hardware else nouns.get(keys[at])) for at in places)
            named = ((at, field or _rate(kind, keys[at], task)) for at, field in named)
            at, field = next(((at, field) for at, field in named if field and _is_open(keys, at, field)), (index, ""))
            words = " ".join(token.text for token in tokens[min(index, at) : max(index + count, at + 1)])
            otherwise = HARDWARE if kind in (CHEAPEST, _FASTEST, _COST) else ""
            yield kind, fields.get(field, field or otherwise), words
            break
