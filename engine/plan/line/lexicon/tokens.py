"""What is typed of a plan: the words of a line, numbers and units that belong together as one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon.processor_words import with_marks
from capacity_tui.engine.plan.line.lexicon.quantities import (
    COMMITMENT,
    OF_TOKEN,
    SUM_OF_ONE,
    is_date,
    mixture_of,
    pieces_of,
    plain_number,
    price_as_one,
    sum_of,
    with_dimensions,
    with_unit,
    words_in,
)
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import INFER
from capacity_tui.engine.record import dataclass

LONGEST_LINE = 400  # Characters of a line that are read; a plan of more belongs into a file

_PER_MILLION = re.compile(
    r"\$?\s?(?:/|\bper\b)\s*(?:1\s*)?(?:million|mil|m(?=\b|tok))\s*(?:tok(?:en)?s?)?\b", re.IGNORECASE
)
"""What money is for, as in ``cost per 1M tokens``, which counts no tokens of a job."""
OF_MILLION = "permillion"

_ORDINAL = re.compile(r"(\d{2}(?:\.\d)?)(?:st|nd|rd|th)[\s-]+percentile", re.IGNORECASE)
_SHARE_OF = re.compile(
    r"(?:(?:for|in|at) |(?=9\d))(\d{2}(?:\.\d)?)\s?% of (?:the |all )?(?:requests|queries|prompts|calls|cases|time)"
    r"\b(?!.{0,25}\btok)",  # but of prompts under 2k tokens
    re.IGNORECASE,
)
# A word ends at a space, or at a comma, semicolon or colon before one; what stands in brackets belongs together.
_A_MILLION = r"\s?(?:/|per\b)\s?(?:1\s?)?(?:million|(?-i:M)\b|m\s?tok)"
_SUM_PER_MILLION = rf"(?:\$[\d.,]+|(?:(?<=\d )|\d[\d.,]*)(?:\$|usd))(?={_A_MILLION})"  # $0.60/M tokens, 0.6 usd/M
_WORD = re.compile(
    rf"{_SUM_PER_MILLION}|{_ORDINAL.pattern}|{_SHARE_OF.pattern}|{SUM_OF_ONE.pattern}|{COMMITMENT.pattern}|{_PER_MILLION.pattern}|(?:\d{{1,3}}\s*[x×*]\s*)?[^\s()，、；。]*\([^()]*\)?|[^\s，、；。]+[，、；。]*",
    re.IGNORECASE,
)

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code) not in "，；"}
"""Letters, digits and marks as wide as ideographs, by their code; commas stay, which end a word wherever they stand."""
PLAIN_MARKS = _WIDE | str.maketrans("，、；", ",,;")  # The same with those commas, for what looks at marks alone
_ENDINGS = ",;:?!\"'`[]，、；。"

_PICTURES = re.compile("[\u2190-\u2191\u2193-\u21ff\u2600-\u27bf\ufe0f\u200d\U0001f000-\U0001faff]")
"""Small pictures, which say nothing, wherever they stand."""

_LANES = re.compile(
    r"\b(?:gen ?[1-6] pcie|pcie(?:[ -]?gen ?[1-6](?:\.0)?|[ -]?[1-6]\.0|[1-6](?= x)))(?: ?x\d{1,2})?(?=[\s,.;)]|$)",
    re.IGNORECASE,
)
"""Generation and lanes of a bus, which say nothing: ``pcie 4.0 x16``."""
_OF_A_NODE = re.compile(r"\b(nodes|servers|machines|hosts),? each (?:with|of|having|has) (?=\d)", re.IGNORECASE)
_FEWEST = re.compile(r"\bmin tokens\b", re.IGNORECASE)  # No minutes
_MACHINE = re.compile(
    r"(?<=\b[dh]gx)-(?=[a-z]\d)|-(?=nvl\d\d)|\bnvidia (?=[dh]gx\b)|(?<![\w.-])(?P<sum>US(?:D| ?\$) ?)(?=\d)"
    r"|\bUS(?= ?\$)|(?<= )=(?= ?\d[\d.,]*k? (?:steps|epochs|iterations|iters)\b)|(?<!\S)w/(?=\d)",
    re.IGNORECASE,
)
"""Marks that say nothing: ``DGX-H100``, ``GB200-NVL72``, ``NVIDIA DGX A100``, ``USD 500``, ``w/24GB``."""
_COUNTED_WORD = re.compile(r"(\d[\d.,]*(?:[kKmM%]??|[bB](?=-)))-?([a-zA-Z]{2,}(?:/[a-z]+)?)")
"""A number and what it counts as one word: ``384-dim``, ``768-d``, ``50rps``, ``20req/s``."""
_BRACKETED = re.compile(r"\((\d{1,3})[x×]\)|(?<=\d\d)\((\d{1,2})\)", re.IGNORECASE)
"""A number of what stands before it: ``A6000 (4x)``, ``H100(8)``."""
_MEMORY = re.compile(  # A10(16*23G), llama(7b), YOLO('yolov8n.pt'), SVC(kernel='rbf'), 推理(8卡A100)
    r"(?<=\w)(?<!\b[cg]pu)\((\s*(?:\d+\s*[x×*]\s*)?\d+\s*gi?b?\s*|\d+b|['\"]?[a-z][\w.-]*['\"]?|[^()]*[^\x00-\xb7()][^()]*"
    r"|(?<=[^\x00-\xff]\()[^()]*|(?!\w+_(?:mib|gib|gbs|tflops|w)=)[a-z]\w*=[^()]*)\)",
    re.IGNORECASE,
)

_QUOTED = re.compile(r"=(['\"])(\w+)\1")
_PAIR = re.compile(r"\((\d+),(?: *(\d+))?\)")  # The shape of an array, that of its labels, the sides of a picture

_SLASH = re.compile(
    r"(?:(?<=in)|(?<=input)|(?<=prompt)|(?<=tok)|(?<=tokens))/(?=\d)|(?<=\d[bB])[/x×*](?=[\d.]+[tT]\b)"
    r"|(?:(?<=[a-z]),(?=\d)|(?:(?<=[a-z]\d)|(?<=[a-z]\d\d)|(?<=[a-z]\d{3})|(?<=\d{4})),(?=\d+[a-z]))(?![^()]*\))",
    re.IGNORECASE,
)
"""A mark between what is counted and the next number, as in ``1024 in/128 out``, ``70b/3T`` and ``4090,256G``."""
_FIGURES = re.compile(r"\(\s*(?:[\d.]+\s*[a-z/]*b(?:/s)?\s*,|\w+_(?:mib|gib|gbs|tflops|w)=)", re.IGNORECASE)
"""Figures of a device in brackets: ``(48GiB,180TFLOPs)``."""
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*(?:\.?(?:post|rc)\d+)?)", re.IGNORECASE)  # vllm 0.6.3

_RELEASED, _PARTS = re.compile(r"(.+)==(\d+\.\d+)"), 3
"""A release, and numbers of a release behind any word, as in ``vllm 0.6.3``; behind the name of software are fewer."""
PLAIN_COUNT = re.compile(r"\d[\d.]*[kKmM]?x?")
"""A number that may count what stands behind another one, as in ``50M 384-dim vectors``."""

_EXPERTS_ON_HOST, _OF_EXPERTS = "cpu-moe", re.compile(r"[\"']?\S*exps\S*=cpu[\"']?", re.IGNORECASE)  # -ot exps=CPU
_WITH_FRACTIONS = frozenset({Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_TPOT_SECONDS, Key.TRAINING_EPOCHS})
"""What may be 2.5, as a release may."""
_MARKS = "`@~≈#¿¡\"'>≥[]"  # What may stand before a word and says nothing: ``~5k samples``
_MACHINES = frozenset({"nodes", "devices", "GPU-hours", "GPU-days", "node-hours"})
_PER_WEIGHT, _LONG_SPANS = ("at", "@", "of", "with"), ("mo", "y")  # Spans of which money is limited, not requests
_NAMED = ("model", "gpu", "gpus", "hardware", "device", "card")  # What its name says by itself
_LATENCIES = (Key.INFERENCE_TTFT_SECONDS, Key.INFERENCE_TPOT_SECONDS, Key.INFERENCE_REQUEST_SECONDS)
_SECONDS = re.compile(r"[<≤]?=?(\d+(?:\.\d+)?(?:us|ms|s))", re.IGNORECASE)
_FARTHEST_TIME, _LONGEST_LATENCY = 6, 4  # Words between a latency and its time, and of its name: time to first token
WHOLE = "endtoend"  # The latency of a whole request
_TOWARDS = frozenset({"for", "to", "until", "till", "before", "the", "a"})  # Words between a time and its latency
PERCENTILE = re.compile(r"p(5\d|[6-9]\d(?:\.\d+)?)", re.IGNORECASE)
_TOKEN, _DEVICE, _HOURS = ("token", "tok"), ("gpu", "device", "accelerator", "node", "card"), ("hours", "hour", "hrs")
_FRACTION, _TABLE = re.compile(r"\d+\.\d+"), re.compile(r"\d[\d.]*[kKmM]? [x×] \d+")
_THOUSANDS, _BEGUN = "000", re.compile(r"[1-9]\d{0,2}(?:000)*")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the line: as it is read, and where it stands."""

    text: str
    start: int
    end: int
    ends: bool = False  # whether a comma or the like stands behind it, over which no name reaches

    @property
    def is_per(self) -> bool:
        """Whether it stands between a number and the time that this is of."""
        return self.text.casefold() in vocabulary().per


def split(text: str) -> list[Token]:
    """Return the words of a line; what is longer than a line may be is left out."""
    tokens: list[Token] = []
    plain_text = _LANES.sub(_bus, text[:LONGEST_LINE].translate(_WIDE))
    plain_text = _OF_A_NODE.sub(lambda node: f"{node[1]} of ".ljust(len(node[0])), with_marks(plain_text))
    plain_text = _BRACKETED.sub(r" x\1\2 ", _PAIR.sub(_sides, _FEWEST.sub("min_tokens", plain_text)))
    plain_text = _MEMORY.sub(lambda call: _QUOTED.sub(r"=\2  ", f" {call[1]} "), plain_text)
    for match in _WORD.finditer(_SLASH.sub(" ", _MACHINE.sub(_blank, _PICTURES.sub(" ", plain_text)))):
        word, start = match[0], match.start()
        parts = [(start, word)]
        if word.startswith("(") and not _FIGURES.match(word):  # a remark in brackets, not the figures of a device
            parts = [(start + 1 + part.start(), part[0]) for part in re.finditer(r"[^\s()]+", word[1:])]
        parts = [(at + start, piece) for at, part in parts for start, piece in pieces_of(part)]
        for at, part in parts:
            plain = part.rstrip(f"{_ENDINGS}.") or part.strip(_ENDINGS)
            if not plain.strip("~≈"):
                continue  # a comma behind brackets, out ~ 300
            marks = len(plain) - len(plain.lstrip(_MARKS))
            marks = 0 if marks == len(plain) else marks
            if several := words_in(plain):
                tokens += (Token(word, at, at + len(plain), plain != part) for word in several)
                continue
            counted, words = _COUNTED_WORD.fullmatch(with_dimensions(plain)), vocabulary()
            places = ((1, at, counted.end(1)), (2, at + counted.start(2), len(plain))) if counted is not None else ()
            pair = [Token(counted[part], first, at + end) for part, first, end in places if counted]
            if counted is not None and counted[1][-1] in "bB" and counted[2].casefold() in words.model_words:
                tokens += pair
                continue  # ein 13B-Modell
            joined = with_unit(counted[1], key_of(counted[2])) if counted is not None and "-" in plain else None
            if joined is not None:
                tokens.append(Token(joined, at, at + len(plain), plain != part))
                continue  # a 90-minute podcast
            if counted is not None and (noun := key_of(counted[2])) in words.amounts:
                amount = words.amounts.get(key_of(tokens[-2].text)) if len(tokens) > 1 else None
                is_named = (amount is not None and not amount.is_behind) or _in_table(tokens)  # batch 16 640px
                is_counted = bool(tokens) and not is_named and not tokens[-1].ends and _is_count(tokens[-1].text)
                is_counted = is_counted and (noun not in words.every["channels"] or tokens[-1].text[-1].isalpha())
                before = len(tokens) - int(is_counted)
                if before < len(tokens):
                    tokens[-1] = replace(tokens[-1], text=tokens[-1].text.removesuffix("x"))  # 1000x 8k-token texts
                tokens[before:before] = pair  # 50M 384-dim vectors
                continue
            _add(Token(_phrase(plain[marks:]), at + marks, at + len(plain), plain != part), tokens)
    return tokens


def _in_table(tokens: list[Token]) -> bool:
    """Whether the last word is the number of features behind that of rows, as 80 of ``1M x 80``."""
    return _TABLE.fullmatch(" ".join(token.text for token in tokens[-3:])) is not None


def with_latencies(tokens: list[Token]) -> list[Token]:
    """Return the words with a time as one with its latency, as in ``ttft stays under 1s`` and ``200ms p90 ttft``.

    Between them stand words without a number, and a percentile, which stays.
    """
    for index, match in ((at, match) for at, token in enumerate(tokens) if (match := _SECONDS.fullmatch(token.text))):
        at = _latency_at(tokens, index)
        at, name = _timed_at(tokens, index) if at is None else (at, _name(tokens, at))
        if at is None:
            continue
        first, last = min(at.start, index), max(at.stop - 1, index)
        name = WHOLE if name.startswith("e2e") else name
        limit = Token(f"{name}<{match[1]}", tokens[first].start, tokens[last].end, tokens[last].ends)
        share = [between for between in tokens[first:last] if PERCENTILE.fullmatch(between.text)]
        return [*tokens[:first], *share, limit, *with_latencies(tokens[last + 1 :])]
    return tokens


def _timed_at(tokens: list[Token], index: int) -> tuple[range | None, str]:
    """Return where words stand that a time limits, and the latency that they mean, as in ``answers within 10 s``.

    A percentile without a latency is one of whole requests, as in ``p95 under 8 s``.
    """
    words = vocabulary()
    keys = ["", *(key_of(token.text) for token in tokens[:index])]
    is_loose, limits = (keys[-1] in most for most in (words.within - words.limiting, words.within | words.limiting))
    for at in range(index - 1, max(index - _FARTHEST_TIME, -1), -1):
        key = keys[at + 1]
        if PERCENTILE.fullmatch(tokens[at].text):
            return range(at + 1, index), WHOLE
        if key in words.measured["taking"] and is_loose and words.measured["due"].isdisjoint(keys[: at + 1]):
            break  # responses take around 20 s
        if limits and key in words.timed:
            return range(at, index), words.timed[key]
        if any(map(str.isdigit, key)):
            break
    after = [key_of(token.text) for token in tokens[index + 1 : index + 3]]
    if after[:1] and after[0] in words.per and after[-1] in words.timed and not tokens[index].ends:  # 10 s per answer
        return range(index, index + 3), words.timed[after[-1]]
    behind = tokens[index + 1 : index + 2]
    is_share = bool(behind) and not tokens[index].ends and PERCENTILE.fullmatch(behind[0].text) is not None
    return (range(index, index + 2), WHOLE) if is_share else (None, "")


def _latency_at(tokens: list[Token], index: int) -> range | None:
    """Return where the latency of a time stands: before it, else behind it; None where there is none."""
    measured = vocabulary().measured
    for at in range(index - 1, max(index - _FARTHEST_TIME, -1), -1):
        latency = next((words for words in _ending(at) if is_latency(_name(tokens, words))), None)
        if latency is not None:
            verbs = {key_of(token.text) for token in tokens[latency.stop : index]} & measured["judging"]
            line = key_of("".join(token.text for token in tokens)) if verbs else ""  # latency is 5 s, too slow
            return None if any(much in line for much in measured["too much"]) else latency
        if any(map(str.isdigit, tokens[at].text)) and not PERCENTILE.fullmatch(tokens[at].text):
            break
    if tokens[index].ends or (index and key_of(tokens[index - 1].text) == "every"):
        return None  # a message every 30 s, ttft 1 s
    is_share = PERCENTILE.fullmatch("".join(token.text for token in tokens[index + 1 : index + 2])) is not None
    behind = index + 1 + int(is_share)
    behind = next((at for at in range(behind, len(tokens)) if key_of(tokens[at].text) not in _TOWARDS), behind)
    ends = range(min(behind + _LONGEST_LATENCY, len(tokens)), behind, -1)
    return next((range(behind, end) for end in ends if is_latency(_name(tokens, range(behind, end)))), None)


def _ending(at: int) -> Iterator[range]:
    """Yield where names stand that end at a word, the longest first, as ``time to first token``."""
    return (range(start, at + 1) for start in range(max(at + 1 - _LONGEST_LATENCY, 0), at + 1))


def _name(tokens: list[Token], words: range) -> str:
    return key_of("".join(token.text for token in tokens[words.start : words.stop])).rstrip("<≤=")


def _add(token: Token, tokens: list[Token]) -> None:
    """Add a word to those before it, as one with them where they belong together: ``10 million``, ``ttft < 1 s``."""
    is_mixed = len(tokens) > 1 and tokens[-1].text in _PER_WEIGHT and mixture_of(tokens[-2].text, token.text)
    del tokens[len(tokens) - bool(is_mixed) :]  # exl2 at 3.5bpw
    tokens[-1:] = _released(tokens[-1:], token.text)
    before = tokens[-1] if tokens else None
    is_apart = before is None or before.ends or (token.text == "k" and _in_table(tokens))  # 1M x 80 k 100
    joined = None if before is None or is_apart else with_unit(before.text, key_of(token.text))
    if before is None:
        tokens.append(token)
    elif (mixture := mixture_of(before.text, token.text)) is not None:
        tokens[-1] = Token(mixture, before.start, token.end, token.ends)
    elif (release := _RELEASE.fullmatch(token.text)) and not before.ends and _is_released(before.text, release[1]):
        tokens[-1] = Token(f"{before.text}=={release[1]}", before.start, token.end, token.ends)
    elif before.text.casefold() == "times" and token.text.isdecimal():  # h100 times 4
        tokens[-1] = Token(f"x{token.text}", before.start, token.end, token.ends)
    elif token.text == _THOUSANDS and _BEGUN.fullmatch(before.text):
        tokens[-1] = Token(f"{before.text}{_THOUSANDS}", before.start, token.end, token.ends)
    elif joined is not None:
        tokens[-1] = Token(joined, before.start, token.end, token.ends)
    elif before.text == "=" and len(tokens) > 1 and not tokens[-2].ends and _is_key(tokens[-2].text):
        is_several = any(_name(tokens, words) in vocabulary().amounts for words in [*_ending(len(tokens) - 2)][:-1])
        is_name = is_several or key_of(tokens[-2].text) in _NAMED  # max model len = 4096, model = llama 3.1 8b
        one = replace(token, text=f"{tokens[-2].text}={token.text}", start=tokens[-2].start)
        tokens[-1 - int(not is_several) :] = [token if is_name else one]
    elif (
        (unit := vocabulary().spans.get(key_of(token.text)))
        and (before.is_per or (before.text == "every" and PLAIN_COUNT.fullmatch(tokens[-3:][0].text)))
        and not (before.ends or tokens[-2:-1] == [] or tokens[-2].ends)
        and _is_rated(tokens[:-1])
    ):
        few = _words_of_one(tokens[:-1])
        rated, of_one = tokens[-2 - few], tokens[-1 - few : -1]  # 15 messages each per day
        end = rated.end if few else token.end
        tokens[-2 - few :] = [Token(f"{rated.text}/{unit}", rated.start, end, token.ends and not few), *of_one]
    elif unit and before.is_per and len(tokens) > 1 and _is_count(tokens[-2].text):
        tokens[-2:] = _in_a_span(tokens, token, unit)
    elif key_of(before.text) in _DEVICE and key_of(token.text) in _HOURS:
        tokens[-1] = Token(f"{before.text}{_HOURS[0]}", before.start, token.end, token.ends)
    elif key_of(token.text) in _TOKEN and before.is_per and _is_time(tokens[:-1]):
        tokens[-2:] = [Token(f"tpot<{tokens[-2].text}", tokens[-2].start, token.end, token.ends)]
    else:
        tokens.append(token)


def _blank(left_out: re.Match[str]) -> str:
    """Return as many blanks as what is left out has characters, a dollar behind them: words stay where they are."""
    return ("$" if left_out["sum"] else "").rjust(len(left_out[0]))


def _sides(pair: re.Match[str]) -> str:
    """Return a pair of numbers in brackets as one word, as long as before: ``720x1280``."""
    return (f" {pair[1]}x{pair[2]}" if pair[2] else f" {pair[1]}()").ljust(len(pair[0]))


def _bus(lanes: re.Match[str]) -> str:
    """Return a bus without its lanes, as long as before, but with a number of a unit, as in ``pcie 2.0 rps``."""
    is_number = lanes[0].endswith(".0") and any(map(_is_unit, lanes.string[lanes.end() :].split(" ", 2)[1:2]))
    return lanes[0] if is_number else "pcie".ljust(len(lanes[0]))


def _released(last: list[Token], unit: str) -> list[Token]:
    """Return software with its release, as two words where the number is of what stands behind: ``vllm 2.5 rps``."""
    released = _RELEASED.fullmatch(last[0].text) if last and _is_unit(unit) else None
    if released is None:
        return last
    middle = last[0].end - len(released[2])
    return [Token(released[1], last[0].start, middle), Token(released[2], middle, last[0].end)]


def _is_unit(word: str) -> bool:
    """Whether a word makes the number before it a measure, as ``bpw``, ``req/s`` and ``epochs``."""
    amount = vocabulary().amounts.get(key := key_of(word.rstrip(_ENDINGS)))
    is_counted = amount is not None and not _WITH_FRACTIONS.isdisjoint(amount.fields.values())
    return is_counted or with_unit("1", key) is not None


def _is_key(word: str) -> bool:
    """Whether a word is set to what stands behind ``=``: no device is, as in ``4 * a6000 = 192 GB``."""
    words, key = vocabulary(), key_of(word)
    return key in _NAMED or key in words.fields or key in words.amounts or key in words.fillers or "." in word


def _is_released(name: str, release: str) -> bool:
    """Whether a number is the release of what stands before it, as in ``vllm 0.6.3`` and ``cuda 12.4``."""
    parts = release.count(".") + 1
    return (parts > 1 and key_of(name) in vocabulary().software) or (
        parts >= _PARTS and name.isalpha() and not is_date(release)
    )


def _in_a_span(tokens: list[Token], token: Token, unit: str) -> list[Token]:
    """Return a number with its span: of requests, as ``90 per minute``; ``under 3k a month`` is a sum of money."""
    number, per = tokens[-2:]
    words, before = vocabulary(), {key_of(word.text) for word in tokens[-4:-2]}
    is_sum = not words.money.isdisjoint(before) or (unit in _LONG_SPANS and not words.limiting.isdisjoint(before))
    if is_sum or (unit == "h" and _FRACTION.fullmatch(number.text)):
        return [Token(f"{number.text}/{unit}", number.start, token.end, token.ends)]
    return [number, Token(f"requests/{unit}", per.start, token.end, token.ends)]


def _is_count(word: str) -> bool:
    """Whether a word is a number that may be of requests in a span of time, and no device: ``90``, but not ``4090``."""
    return PLAIN_COUNT.fullmatch(word) is not None and word not in vocabulary().hardware


def _is_rated(tokens: list[Token]) -> bool:
    """Whether the last word says what a number counts, or is a sum: what may be so much of in a second or an hour."""
    tokens = tokens[: len(tokens) - _words_of_one(tokens)]
    words, key = vocabulary(), key_of(tokens[-1].text) if tokens else ""
    amount = words.amounts.get(key)
    is_amount = amount is not None and amount.tells and amount.name not in _MACHINES  # a node per hour costs
    return is_amount or key in words.sent or bool(tokens and sum_of(tokens[-1].text) is not None)


def _words_of_one(tokens: list[Token]) -> int:
    """Return how many words at the end say that requests before them are those of each user: ``per user``."""
    words, keys = vocabulary(), ["", "", "", *(key_of(token.text) for token in tokens)][-3:]
    amount = words.amounts.get(keys[-1])
    is_user = amount is not None and amount.fields.get(INFER) == Key.INFERENCE_USERS
    few = 1 if keys[-1] in words.every["apiece"] else 2 if is_user and keys[-2] in words.per else 0
    return few if few and keys[-1 - few] in words.sent else 0


def _is_time(tokens: list[Token]) -> bool:
    return bool(tokens) and OF_TOKEN.fullmatch(f"{tokens[-1].text}/token") is not None


def is_latency(word: str) -> bool:
    """Whether a key is the name of a latency."""
    amount = vocabulary().amounts.get(word)
    return amount is not None and not amount.reciprocal and amount.fields.get(INFER) in _LATENCIES


def _phrase(word: str) -> str:
    """Return a phrase that is one word as it is read everywhere; other words with their numbers so."""
    ordinal = _ORDINAL.fullmatch(word) or _SHARE_OF.fullmatch(word)
    if (price := price_as_one(word)) is not None:
        return price
    if ordinal is not None:
        return f"p{ordinal[1]}"  # 99th percentile
    option = _EXPERTS_ON_HOST if _OF_EXPERTS.fullmatch(word) else vocabulary().short_options.get(word, word)
    return OF_MILLION if _PER_MILLION.fullmatch(word) else plain_number(option)
