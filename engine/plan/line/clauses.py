"""Lines that say more than a plan: what of one is planned, and the clauses that are left out for that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon.question_words import Questions
from capacity_tui.engine.plan.line.lexicon.task_words import TASK, task_named
from capacity_tui.engine.plan.line.lexicon.tokens import split
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import (
    GIVEN_TWICE,
    INFER,
    OF_WHAT,
    REFUSED,
    UNCOUNTED,
    WHOSE_MEMORY,
    Meaning,
    OneLine,
    Word,
)
from capacity_tui.engine.plan.line.posts import are_plain, clauses_in, keys_of, says

_NOTHING = Meaning()
_OF_HARDWARE, _OF_LOAD = "hardware.", "inference."  # What fields begin with that only transformers have
_OF_MACHINES = (_OF_HARDWARE, "pricing.")  # What fields of machines and their prices begin with
_FARTHEST_TASK = 4  # Words between a joint and the second of two tasks, as in ``and then to serve``
_FEWEST_WORDS = 2  # Of a clause that tells something
_REPORTED = "which is told; planned for"  # What of a line gives way to what it asks about
_SECOND_JOB = "left out: {}: a second job, which is a plan of its own"
_ASKED = 2  # What a clause counts for that asks
_IN_TIME = "time<="  # What a limit on time begins with
_OF_HOST = frozenset({hardware.HOST_MEMORY, Key.HARDWARE_HOST})  # Where other cards go in
_LATENCIES = frozenset({Key.INFERENCE_TTFT_SECONDS, Key.INFERENCE_TPOT_SECONDS, Key.INFERENCE_REQUEST_SECONDS})
_OF_A_RUN = frozenset({models.MODEL, hardware.NAME, hardware.DEVICES})  # What tells one run from another

Reader = Callable[[str], OneLine]


def planned_part(line: OneLine, read: Reader) -> OneLine | None:
    """Return what of a line is planned that is no plan as a whole; None where no part of it is.

    Args:
        line: as it was read.
        read: how parts of it are read.
    """
    return _first_job(line, read) or _without_second_task(line, read) or without_narration(line, read)


def with_way_to_answer(line: OneLine, read: Reader) -> OneLine:
    """Return a line that asks for other hardware than it names with what finds some: itself, without its own.

    Where it only tells of its own, it is planned so: ``qlora 70b OOMs on my 3090, which gpu do i need?``.
    """
    if line.asked is not None or not line.unanswered or not line.has(hardware.NAME):
        return line
    named = [word for word in line.words if any(path.startswith(_OF_HARDWARE) for path in word.meaning.values)]
    uncounted = rest = line.text
    for word in reversed(named):
        before, joints = split(rest[: word.start]), vocabulary().joints
        while before and key_of(before[-1].text) in joints and not before[-1].ends:
            before = before[:-1]
        rest = f"{rest[: before[-1].end] if before else ''}{rest[word.end :]}"
        uncounted = f"{uncounted[: word.start]}{_count().sub('', word.text)}{uncounted[word.end :]}"
    places = [*clauses_in(line.text)]
    clauses = [line.text[slice(*place)] for place in places]
    weights = _weights(clauses)
    is_counted = any(question.field == hardware.DEVICES for question in Questions(line.text, split(line.text)).all())
    for text, path in ((uncounted, hardware.DEVICES), (rest.strip(" ,;"), hardware.NAME)):
        other = read(text)
        is_same = all(line.values.get(key, value) == value for key, value in other.values.items())
        if other.faults or other.asked is None or other.asked.solve != path or not is_same:
            continue
        questions = (clause for weight, clause in zip(weights, clauses, strict=True) if weight == _ASKED)
        is_outdone = any(says(clause, "outdoing") for clause in questions)
        own = [word for word in named if path == hardware.NAME or path in word.meaning.values]
        first = weights.index(_ASKED) if _ASKED in weights else 0  # behind it i only have a 3090 is what is there
        is_reported = all(_place_of(word, places) < first for word in own)
        # A number of those which nobody knows; and what is faster is no question for the cheapest that does it.
        if not is_reported or is_outdone or (is_counted and path == hardware.NAME):
            return replace(line, words=(*line.words, Word.of_line(line.text, f"what answers it: {text}")))
        numbers = (_count().match(word.text) for word in own)
        left = [number[0] for number in numbers if number] if path == hardware.DEVICES else [word.text for word in own]
        whys = (f"left out: {some.strip()}, {_REPORTED} what answers {other.asked.why!r}" for some in left)
        words = (*other.words, *(Word.of_line(line.text, why) for why in whys))
        return replace(other, text=line.text, words=words, has_given_way=True)
    return line


def with_reports(line: OneLine) -> OneLine:
    """Return a line with what to know of settings that others are reported to have: ``the paper used batch 256``."""
    reported = vocabulary().measured["reported"]
    if reported.isdisjoint(line.text.casefold().split()):
        return line
    places = (place for place in clauses_in(line.text) if not reported.isdisjoint(keys_of(line.text[slice(*place)])))
    words = (word for place in places for word in _words_in(line, place) if not word.meaning.why)
    settings = (word.text for word in words if word.meaning.values.keys() - {*_OF_A_RUN, TASK})
    whys = (f"{text}: as is reported, and planned for; leave it out to see the plan without" for text in settings)
    return replace(line, words=(*line.words, *(Word.of_line(line.text, why) for why in whys)))


def _first_job(line: OneLine, read: Reader) -> OneLine | None:
    """Return the first of two jobs that a line says one after the other, as ``lora 8b on a 4090, then serve it``.

    None where it is none by itself, where the second says hardware that the first needs, or where both are the same.
    """
    for joint in split(line.text):
        is_contrast = key_of(joint.text) in vocabulary().contrasting and not line.text.endswith("?")
        if not is_contrast and key_of(joint.text) not in vocabulary().following:
            continue
        second = read(line.text[joint.end :].strip())
        is_load = second.task == INFER and any(path.startswith(_OF_LOAD) for path in second.values)
        if not (is_load or is_contrast) and task_named(second.text.partition(" ")[0]) is None:
            continue
        first = read(line.text[: joint.start].rstrip(" ,;."))
        has_hardware, has_model = second.has(hardware.NAME), second.has(models.MODEL)
        is_whole = first.has(models.MODEL) and (first.has(hardware.NAME) or not (has_hardware or is_contrast))
        is_other = has_hardware or has_model if is_contrast else (first.task == INFER) != (second.task == INFER)
        if is_whole and not first.faults and is_other:
            return _part(line, first, read, [_SECOND_JOB.format(second.text)])
    return None


def _without_second_task(line: OneLine, read: Reader) -> OneLine | None:
    """Return the first of two jobs that are done with the same, as ``fine tune and run inference, llama 8b 4090``."""
    tokens, words = split(line.text), vocabulary()
    for at, joint in enumerate(tokens):
        if key_of(joint.text) not in words.following:
            continue
        second = next((token for token in tokens[at + 1 : at + _FARTHEST_TASK] if task_named(token.text)), joint)
        first = read(_blanked(line.text, joint.start, second.end))
        is_other = second is not joint and (first.task == INFER) != (
            (task_named(second.text) or _NOTHING).values.get(TASK) == INFER
        )
        if is_other and not first.faults and not any(entry.key == TASK for entry in first.assumed):
            return _part(line, first, read, [_SECOND_JOB.format(line.text[joint.start : second.end])])
    return None


def without_narration(line: OneLine, read: Reader) -> OneLine | None:
    """Return a line without the clauses that tell of something else, where the rest is a plan: ``but vllm gives 30``.

    What two of them say is that of the one which does not tell of another run. What only these say is not lost, unless
    they are of another model or machine.
    """
    faulty = [word for word in line.words if _is_faulty(word, line)]
    titles = [word.wrong for word in faulty]
    twice = {title.removesuffix(GIVEN_TWICE).strip() for title in titles if title.endswith(GIVEN_TWICE)}
    clauses = [place for place in clauses_in(line.text) if faulty and _is_narration(line.text[slice(*place)])]
    repeated = [place for place in clauses if any(map(_repeats, _words_in(line, place)))]
    earlier = [place for place in clauses if any(twice & word.meaning.values.keys() for word in _words_in(line, place))]
    others = [place for place in repeated or earlier if _is_of_another_run(line.text[slice(*place)])]
    wrong = [
        place for place in clauses if place not in repeated and any(map(faulty.__contains__, _words_in(line, place)))
    ]
    left_out, places = sorted({*others, *wrong}), [*clauses_in(line.text)]
    inside = [word for place in left_out for word in _words_in(line, place) if word in faulty]
    must = [word for word in inside if says(line.text[slice(*places[_place_of(word, places)])], "binding")]
    if not left_out or any(_is_asked_back(word, line.text) for word in inside) or any(map(_is_number, must)):
        return None
    text = line.text
    for place in left_out:
        text = _blanked(text, *place)
    rest = read(text)
    is_other = not twice.isdisjoint(_OF_A_RUN)  # on another machine, whose settings are its own
    kept = (_OF_A_RUN if is_other else line.values.keys()) - {TASK} - twice
    is_kept = (
        all(rest.values.get(path) == line.values.get(path) for path in kept) and twice & _OF_A_RUN <= rest.values.keys()
    )
    is_kept &= _bounds(line) <= _bounds(rest)
    is_known = bool(twice) or all(word.text in line.unknown for word in inside)  # no amount of what is asked about
    is_asked = line.asked is None or (is_known and rest.asked is not None and rest.asked.solve == line.asked.solve)
    if rest.faults or not (rest.has(models.MODEL) and is_kept and is_asked):
        return None
    return _part(line, rest, read, (f"left out: {line.text[start:end].strip()}" for start, end in left_out))


def _part(line: OneLine, rest: OneLine, read: Reader, whys: Iterable[str]) -> OneLine:
    """Return what is left of a line as the whole of it, with why the rest gave way."""
    rest = with_way_to_answer(rest, read)
    return replace(rest, text=line.text, words=(*rest.words, *(Word.of_line(line.text, why) for why in whys)))


def as_asked(line: OneLine, read: Reader) -> OneLine | None:
    """Return a line with what it asks about where it tells otherwise, as ``3 days on a T4, how long on an A100?``.

    What else is told is kept, but for how fast that was. None where clauses are on a par, or the rest is no plan.
    """
    twice = {path for word in line.words if (path := _repeated_field(word))}
    places = [*clauses_in(line.text)]
    weights = _weights([line.text[slice(*place)] for place in places])
    weight = {word: weights[_place_of(word, places)] for word in line.words}
    left: dict[Word, Word] = {}
    for path in twice if _ASKED in weights else ():
        of_it = (word for word in line.words if path in word.meaning.values or _repeated_field(word) == path)
        *others, asked = sorted(of_it, key=weight.__getitem__)
        if asked.wrong == WHOSE_MEMORY and says(line.text[slice(*places[_place_of(asked, places)])], "binding"):
            return None  # does it need 16gb: no memory that is there
        lesser = [word for word in others if weight[word] < weight[asked]]
        left |= {word: asked for word in lesser if weight[word] < 0 or word.start < asked.start}
    clauses = {_place_of(word, places): holding for word, holding in left.items()}
    is_other = hardware.NAME in twice
    for word in line.words:
        by, paths = clauses.get(_place_of(word, places)), word.meaning.values.keys()
        is_of_it = is_other and any(path.startswith(_OF_MACHINES) for path in paths - _OF_HOST)
        is_time = bool(paths & _LATENCIES) or word.meaning.words.startswith(_IN_TIME)
        if by is not None and is_time and says(line.text[slice(*places[_place_of(word, places)])], "binding"):
            return None  # the time that a run must keep, rather than took
        if by is not None and (is_of_it or is_time):
            left.setdefault(word, by)
    text = line.text
    for word in left:
        is_count = hardware.NAME in word.meaning.values and not is_other
        count = _count().match(word.text) if is_count else None
        text = _blanked(text, word.start, word.end if count is None else word.start + count.end())
    rest = read(text) if left else line
    if rest.faults and left and TASK not in twice:
        rest = without_narration(rest, read) or as_asked(rest, read) or rest
    kept = {path for word in line.words if word not in left for path in word.meaning.values} - {TASK, *twice}
    is_kept = all(rest.values.get(path) == line.values.get(path) for path in kept)
    limits, bounds = {word.meaning.words for word in left}, _bounds(rest)
    is_kept &= _bounds(line) - limits <= bounds and set(rest.limits) <= _bounds(line)  # no price of what gave way
    if rest.faults or not is_kept or (line.asked and not rest.asked):
        return None
    pairs = ((word.text, asked.text) for word, asked in left.items())
    whys = (f"left out: {text}, {_REPORTED} {asked}" for text, asked in pairs if text != asked)
    return replace(_part(line, rest, read, whys), has_given_way=True)


def _weights(clauses: list[str]) -> list[int]:
    """Return how much each clause of a line counts: most one that asks, least one that tells of another run."""
    words, weights, is_in_one = vocabulary(), list[int](), False
    for clause in clauses:
        keys = keys_of(clause)
        first = next(
            (at for at, key in enumerate(keys) if key not in words.contrasting | words.both | words.following), 0
        )
        begins = {"".join(keys[first : first + few]) for few in range(1, _FARTHEST_TASK)}
        openings = words.solving["opening"] | words.solving["wishing"] | words.queries.keys()
        is_choice = not words.comparing.isdisjoint(keys[:1])  # a 3090, or a 4090: no question, but or do i need one
        asks = bool(begins & openings) or (not is_choice and clause.rstrip().endswith(("?", "？")))
        asks |= is_choice and not openings.isdisjoint(keys[1:2])
        meant = (words.measured["run meant"] | words.solving["wishing"]) - words.measured["present"]
        is_reported = is_in_one or not words.measured["reported"].isdisjoint(keys)
        is_in_one = is_reported and len(keys) < _FARTHEST_TASK and clause.endswith(",")  # in the paper, they use 8
        is_other = is_reported or (_is_narration(clause) and _is_of_another_run(clause))
        weights.append(_ASKED if asks else -1 if is_other else int(not meant.isdisjoint(keys)))
        if is_choice and not asks and len(weights) > 1:
            weights[-2:] = [max(weights[-2:])] * 2
    return weights


def _place_of(word: Word, places: list[tuple[int, int]]) -> int:
    """Return which of the clauses of a line a word stands in."""
    return next((at for at, (start, end) in enumerate(places) if start <= word.start < end), len(places) - 1)


def _repeated_field(word: Word) -> str:
    """Return the field that a word says otherwise than another one; empty for others."""
    title = word.wrong
    is_of_other = title == WHOSE_MEMORY  # on my 12gb card, is 24gb enough
    return (
        hardware.NAME if is_of_other else title.removesuffix(GIVEN_TWICE).strip() if title.endswith(GIVEN_TWICE) else ""
    )


def _words_in(line: OneLine, place: tuple[int, int]) -> list[Word]:
    return [word for word in line.words if place[0] <= word.start < place[1]]


def _repeats(word: Word) -> bool:
    return word.wrong.endswith(GIVEN_TWICE)


def _bounds(line: OneLine) -> set[str]:
    """Return what must hold in a line, and whose machines may be taken."""
    return {*line.limits, *(() if line.asked is None else (*line.asked.limits, *line.asked.clouds))}


def _is_of_another_run(clause: str) -> bool:
    """Whether a clause tells of a run that was, or of somebody else's: ``my friend got 40 tok/s on a 3090``."""
    keys, words = {*keys_of(clause)}, vocabulary().measured
    return not keys.isdisjoint(words["other run"]) and keys.isdisjoint(words["run meant"])


def _is_asked_back(word: Word, text: str) -> bool:
    """Whether what is wrong with a word is for who wrote it to tell: a model of no plan, a memory of who knows what."""
    title = word.wrong
    return title.endswith(REFUSED) or title == OF_WHAT or (title == WHOSE_MEMORY and text.count(word.text) == 1)


def _is_number(word: Word) -> bool:
    """Whether a word is a number of nothing: what has to hold may be one."""
    return word.text.isdecimal() and word.wrong in (OF_WHAT, UNCOUNTED)


def _is_faulty(word: Word, line: OneLine) -> bool:
    fault = word.meaning.fault
    return fault is not None and (fault in line.faults or word.text in line.unknown)


def _is_narration(clause: str) -> bool:
    """Whether a clause tells something in plain language, rather than says settings one after the other."""
    words, keys = vocabulary(), keys_of(clause)
    tells = not all(map(str.isascii, keys)) or not words.narrating.isdisjoint(keys)
    is_contrast = not words.contrasting.isdisjoint(keys[:1])
    asks = not words.solving["opening"].isdisjoint(keys[is_contrast : is_contrast + 1])
    asks |= clause.rstrip().endswith(("?", "？")) and not is_contrast
    asks |= not (words.comparing | words.solving["wishing"]).isdisjoint(keys)
    return tells and not asks and len(keys) >= _FEWEST_WORDS and are_plain(keys)


@cache
def _count() -> re.Pattern[str]:
    """Return a number of devices before their name, as in ``8x a100`` and ``two 3090s``."""
    return re.compile(rf"^(?:\d+\s*[x×*]?|(?:{'|'.join(vocabulary().counts)})\b)\s*", re.IGNORECASE)


def _blanked(text: str, start: int, end: int) -> str:
    """Return a line with blanks for some of it: words stay where they are."""
    return f"{text[:start]}{' ' * (end - start)}{text[end:]}"
