"""Read the one line that says a plan: ``llama-3.1-70b lora 8xh100 4k 50M``, its words in any order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import find_known_model, presumed_family
from capacity_tui.engine.plan.line.clauses import as_asked, planned_part, with_reports, with_way_to_answer
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of, is_date
from capacity_tui.engine.plan.line.lexicon.question_words import CHEAPEST, MANY, Questions, general_question
from capacity_tui.engine.plan.line.lexicon.similarity import TASK_NAME, is_plain, same_format, similar_names
from capacity_tui.engine.plan.line.lexicon.spelled_numbers import vague_number
from capacity_tui.engine.plan.line.lexicon.task_words import METHOD, TASK, is_camera, task_meant, task_named
from capacity_tui.engine.plan.line.lexicon.tokens import LONGEST_LINE, OF_MILLION, is_latency
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import (
    FINETUNE,
    FIT,
    INFER,
    REFUSED,
    TRAIN,
    Asked,
    Assumption,
    Meaning,
    OneLine,
    Word,
)
from capacity_tui.engine.plan.line.posts import without_asides
from capacity_tui.engine.plan.line.questions import (
    asked_of,
    asks_for_model,
    asks_for_nodes,
    days_until,
    limit_in,
    unanswered,
    unclear,
)
from capacity_tui.engine.plan.line.recognition.number_names import BATCH_OF_TOKENS
from capacity_tui.engine.plan.line.training_words import TrainingWords
from capacity_tui.engine.plan.line.unknown_words import remainder
from capacity_tui.engine.plan.options import bears_on_a_run
from capacity_tui.engine.schema import AUTO

_NOTHING = Meaning()
_USERS = Key.INFERENCE_USERS
_OF_LOAD = "inference."  # What fields begin with that only transformers have
_TIMES = ("x", "×", "*")
_FARTHEST_DAY = 5  # Words between one of ``until`` and the day, as in ``by the end of march``
_CAUSE = "due", "to"
_IN_ALL = "usd<="  # What a limit on the money of the whole begins with
_ONE_MACHINE = "the line names its hardware; `capacity-tui need --solve hardware.name` and Find compare machines"


def read_line(text: str, catalog: Catalog | None = None, *, is_settled: bool = True) -> OneLine:
    """Return what a line says: values of a plan, and what each word was taken for.

    Args:
        text: the line.
        catalog: what names stand for; the shipped one with the user's own by default.
        is_settled: whether what it asks about holds where it tells something else; a fault, where it does not.
    """
    facts = catalog or load_catalog()

    read = partial(_read, catalog=facts)

    def read_post(words: str) -> OneLine:
        return without_asides(read(words), facts)

    line = read(text)
    part = planned_part(line, read) if line.faults else with_way_to_answer(line, read)
    if part is None and is_settled:
        line = without_asides(line, facts)
        part = planned_part(line, read_post) if line.faults else with_way_to_answer(line, read)
    part = part or line
    if part.faults and is_settled:
        part = as_asked(part, read_post) or part
    return with_reports(part)


@lru_cache(maxsize=256)
def _read(text: str, catalog: Catalog) -> OneLine:
    """Return what a line says as a whole; parts of one are read again and again."""
    return _Line(text, catalog).read()


class _Line(TrainingWords):
    """A line while it is read: first the words that name model, hardware and task, then those that depend on them."""

    def read(self) -> OneLine:
        """Return all of it."""
        if len(self._text) > LONGEST_LINE:
            hint = "write a plan file, and name it"
            self._faults.append(PlanError("too long for one line", f"{len(self._text)} characters", hint))
        self._find_options()
        self._other_service()
        self._second_model()
        self._mixture()
        self._weighed_model()
        self._pass(lambda index: self._network(index) or self._side_at(index) or self._table(index))
        self._pass(self._models_asked_for)
        self._pass(self._named)
        self._pass(self._sized)
        self._portable()
        self._other_objective()
        self._find_task()
        self._set_options()
        self._pass(self._processor)
        self._pass(self._of_no_rate)
        self._sign_sums()
        self._pass(self._set)
        self._pass(self._guessed)
        self._batches_of_devices()
        self._custom_device()
        self._derive()
        self._limit_loads()
        slips = self._mended.items() if models.MODEL in self._values else ()
        self._assumed += [
            Assumption(models.MODEL, self._values[models.MODEL], f"{slip}: {meant} is the nearest name")
            for slip, meant in slips
        ]
        self._faults += self._exclusions()
        asked = self._asked()
        named = "" if any(entry.key == TASK for entry in self._assumed) else self._task
        fault = general_question(self._tokens) or unclear(self._questions, self._tokens, named, self._loaded(), asked)
        is_of_hardware = asked is not None and asked.solve == hardware.NAME
        if self._limits and not is_of_hardware and self._values.keys().isdisjoint({models.MODEL, hardware.NAME}):
            hint = "name the model, as lora llama-3.1-8b $2000, or the hardware, as train 8xh100 $50k: which model"
            self._faults.append(PlanError("a limit of what?", next(iter(self._limits.values())), hint))
        asked = self._of_models(self._asked() if self._asks_of_family() else asked)
        self._price_of_devices()
        is_named = self._is_named(asked)
        plain = tuple(text for text in self._unknown if self._bears_nothing(text, is_named=is_named))
        self._unknown = {text: name for text, name in self._unknown.items() if text not in plain}
        self._faults += [self._fault_of_unknown()] if self._unknown else []
        self._faults += [fault] if fault is not None and (models.MODEL in self._values or not self._unknown) else []
        fields = {*self._values, *([] if asked is None else [asked.solve])}
        open_ = unanswered(self._questions, self._values, asked)
        left_out = remainder(self._tokens, self._taken, self._task, fields, self._traits(), open_, plain)
        words = (*self._words(), *([Word.of_line(self._text, left_out)] if left_out else []))
        unknown = tuple(self._unknown)
        assumed, faults = tuple(self._assumed), tuple(sorted(self._faults, key=_is_lesser))
        limits = () if asked is not None else tuple(map(self._of_the_job, self._limits.values()))
        return OneLine(
            self._text, self._task, words, assumed, self._values, faults, unknown, asked, limits, tuple(open_)
        )

    def _asked(self) -> Asked | None:
        """Return what the line asks for."""
        named = self._hardware_words()
        if hardware.DEVICES in self._values and asks_for_nodes(self._tokens):
            self._values[Key.HARDWARE_PER_NODE] = self._values.pop(hardware.DEVICES)
        counted = {
            at
            for first, (count, meaning) in self._taken.items()
            for at in range(first, first + count)
            if meaning.values.keys() - {TASK, METHOD} or (meaning.words and not meaning.values)
        }
        questions = [*Questions(self._text, self._tokens, self._task, named, counted).all()]
        if self._values.get(hardware.NAME) in self._catalog.instances:  # how many g5.xlarge instances
            boxes = {f"{box}s" for box in vocabulary().boxes}
            of_boxes = [one for one in questions if not boxes.isdisjoint(one.words.split())]
            loads = self._limits or any(path.startswith(_OF_LOAD) for path in self._values)
            is_run_on = any(key_of(self._span(at - 1, 1)) in vocabulary().joints for at in named if at)  # fit on a p5
            boxed = [one for one in of_boxes if loads or self._task != INFER or not is_run_on]
            replicas = [one for one in boxed if one.field == Key.PARALLELISM_DP]
            questions = [replace(one, field=hardware.DEVICES) if one in replicas else one for one in questions]
        self._questions = (*questions, *self._purchases)
        limits = tuple(self._limits.values())
        asked = asked_of(self._questions, self._tokens, named, self._task, self._loaded(), limits)
        takes_load = self._model is None or self._model.kind == "transformer"
        if asked is not None and (takes_load or not asked.solve.startswith(_OF_LOAD)):
            return asked
        for index, token in enumerate(self._tokens):
            is_limit = key_of(token.text) in vocabulary().money and bool(self._limits or self._purchases)
            is_asked = vocabulary().queries.get(key_of(token.text)) == CHEAPEST and not is_limit
            if is_asked and self._taken.get(index) == (1, _NOTHING):
                self._taken[index] = 1, Meaning(why=f"{token.text}: {_ONE_MACHINE}")
        return None

    def _loaded(self) -> dict[str, object]:
        """Return what the line says, with its users even where all of them are there at once."""
        users = (taken.values.get(_USERS) for _, taken in self._taken.values())
        values = {_USERS: next(filter(None, users), None), **self._values}
        return {path: value for path, value in values.items() if value is not None}

    # The task

    def _find_task(self) -> None:
        """Take the task that was named, or the one that the other words are of."""
        self._model_of_work()
        name = self._values.get(models.MODEL)
        family = presumed_family(str(name), self._catalog) if name not in (None, AUTO) else None
        if self._values.get(TASK) == FIT and (family is None or family.task != FIT):
            self._values.pop(TASK)  # does it fit, which every plan answers
        elif (
            family is not None and family.task == FIT and self._values.get(TASK) in (TRAIN, FINETUNE)
        ):  # catboost tuning
            self._values[TASK] = FIT
        self._model = find_known_model(str(name), self._catalog) if family is not None else None
        if TASK not in self._values:
            self._pass(self._task_meant)
        if TASK in self._values:
            self._task = str(self._values[TASK])
            return
        others = (self._is_size_of_model, self._is_other_size, self._is_of_degree, self._is_of_nothing)
        telling = [at for at in range(len(self._tokens)) if not any(is_other(at) for is_other in others)]
        telling = [index for index in telling if not self._is_active_size(index - 1)]  # 37B active are no users
        counts = {index: self._count_of(index) for index in telling if self._is_number_at(index)}
        of_job = (settings.TOKENS, BATCH_OF_TOKENS, "compute")
        telling = [index for index in telling if (count := counts.get(index)) is None or count.amount.name in of_job]
        words = [self._tokens[index].text for index in telling]
        words += filter(is_latency, (key_of(self._span(index, 4)) for index in telling))  # time to first token
        free = [self._tokens[index].text for index in telling if self._is_free(index)]
        questions = [*Questions(self._text, self._tokens).all()]
        asks = not self._models_asked.is_open or asks_for_model(questions)
        if models.MODEL not in self._values and asks:
            free.append("best")
        devices, tokens = self._degree(hardware.DEVICES), self._most_tokens(counts)
        self._task, why = task_meant(words, free, family, self._catalog, devices, tokens)
        counts_tokens = (question for question in questions if question.field == Key.TRAINING_TOKENS)
        is_timed = any(duration_of(token.text) is not None for token in self._tokens)
        if self._task == INFER and is_timed and (asked := next(counts_tokens, None)) and "because" not in why:
            self._task, why = TRAIN, f"task: training, because of '{asked.words}' in a time"
        self._values[TASK] = self._task
        self._assumed.append(Assumption(TASK, self._task, why))

    def _is_other_size(self, index: int) -> bool:
        """Whether a word is the size of another model, as the second of ``14b or 32b`` and of ``70b and 405b``."""
        words, before = vocabulary(), key_of(self._span(index - 1, 1)) if index else ""
        is_joined = before in words.both and index > 1 and models.is_size(self._tokens[index - 2].text)
        is_other = (before in words.comparing or is_joined) and models.is_size(self._tokens[index].text)
        return is_other and not (self._is_number_at(index) and self._is_counted(index))

    def _task_meant(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a slip in the name of a task: it is known before what depends on it."""
        text = self._tokens[index].text
        if not self._is_free(index) or not text.isalpha() or self._is_known(text) or is_plain(text):
            return None
        words, key = vocabulary(), key_of(text)
        if (
            self._is_setting(text)
            or key in words.suggests.keys() | words.of_serving | words.remarks.keys() | words.needs.keys()
        ):
            return None
        near = next(iter(similar_names(text, self._catalog)), ("", ""))
        meaning = task_named(near[1]) if near[0] == TASK_NAME else None
        return None if meaning is None else (1, replace(meaning, why=f"{text[:40]}: {near[1]} is the nearest name"))

    def _set(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize numbers with what they count, names of values, and ``key=value``."""
        text = self._tokens[index].text
        rate, after = self._taken.get(index - 2, (0, _NOTHING))[1].values, key_of(self._span(index + 2, 1))
        if text in _TIMES and Key.INFERENCE_REQUEST_RATE in rate and not is_camera(after, with_rate=True):
            hint = "write how many a second they make"  # 300 qps x 100 passages, but 30 fps x 4 cameras
            return 1, Meaning(fault=PlanError("a product is no rate", self._span(index - 2, 4), hint))
        known = self._flag(index, "--") or self._times_the_usual(index) or self._price(index)
        known = known or self._hours_of_sound(index) or self._piece_of_sound(index) or self._interval(index)
        known = known or self._measured_time(index) or self._layers_of_all(index) or self._hours_a_day(index)
        known = known or self._until_a_day(index) or self._memory_speed(index) or self._mesh(index)
        limit = limit_in(self._tokens, index) if known is None else None
        if known is not None or limit is not None:
            return known or (1, self._limit(index, limit or ""))
        if "=" in text.rstrip("=") and any(map(str.isalnum, text)):
            key, _, number = text.partition("=")
            amount = settings.amount_of(key) if settings.is_number(number) else None
            kept = None if amount is None else self._kept(amount, number, key)
            kept = self._nodes(number) if amount is not None and amount.name == "nodes" else kept
            meaning = kept or settings.assigned(text, self._task, self._model)
            is_option, remark = text.startswith("--") and not bears_on_a_run(key), vocabulary().remarks.get(key_of(key))
            is_unknown = meaning.fault is not None and meaning.fault.title == settings.NO_FIELD
            is_left_out = is_unknown and (is_option or remark is not None)
            return 1, Meaning(why=remark or f"left out: {text}") if is_left_out else meaning
        figure = hardware.figures_of(text)
        if figure is not None:
            return self._other_machine(index, figure) or self._file_size(index) or self._figure(index, figure)
        ruled_out = self._ruled_out(index)
        counted = (
            ruled_out
            or self._dimensions(index)
            or self._share_first(index)
            or self._cache(index)
            or self._some_data(index)
            or self._to_from(index)
        )
        counted = counted or self._counted(index) or self._shape(index) or self._trained_on(index)
        if counted is not None or settings.is_number(text):
            return counted or self._part_of_data(index)
        return self._field_first(index) or self._value_of_some(index) or self._alone(text) or self._flag(index, "-")

    def _until_a_day(self, index: int) -> tuple[int, Meaning] | None:
        """Refuse a day until which something has to be done, as in ``by the end of march``; pass over an age."""
        text, until = self._tokens[index].text, vocabulary().until
        near = self._tokens[max(index - _FARTHEST_DAY, 0) : index]
        ended = (at for at, token in enumerate(near, 1) if token.ends and key_of(token.text) not in until)
        keys = [key_of(token.text) for token in near[max(ended, default=0) :]]  # due friday, it's tuesday
        before = {key for key, after in pairwise((*keys, "")) if (key, after) != _CAUSE}
        if (days := days_until(self._tokens, index)) is not None and not until.isdisjoint(before):
            why = f"until {self._span(index, days[1])}: {days[0]} days from today"
            return days[1], replace(self._limit(index, f"time<={days[0]}d"), why=why)
        if duration_of(text) is not None and key_of(self._span(index + 1, 1)) in vocabulary().since:
            return 2, _NOTHING  # a 3 year old card
        is_year = settings.is_year(text) or is_date(text)
        is_year &= key_of(self._span(index - 1, 1)) in until | vocabulary().dates
        if not is_year and (key_of(text) not in vocabulary().dates or until.isdisjoint(before)):
            return None
        if any(duration_of(token.text) for token in self._tokens[index + 1 : index + _FARTHEST_DAY]):
            return 1, _NOTHING  # till 6pm, that is 5 hours
        hint, asked = "say how long it may take, as within 3 days", Questions(self._text, self._tokens).all()
        if any(question.kind == MANY or question.field == hardware.NAME for question in asked):
            return 1, Meaning(fault=PlanError("a day is no length of time", text, hint))
        return 1, Meaning(why=f"left out: until {text}; {hint}")

    def _limit(self, index: int, limit: str) -> Meaning:
        """Keep a limit on time or money, which is asked for rather than planned."""
        if self._begins_range(index) and limit_in(self._tokens, index + 2) is not None:  # $10k to $20k
            return self._range(index)
        if key_of(self._span(index + 1, 1)) == OF_MILLION:
            return replace(self._to_buy(index), why=f"left out: {self._written(index)}; every result prices tokens")
        if limit.startswith(_IN_ALL) and self._is_bought(index) and not self._is_small(limit):
            return self._to_buy(index)
        self._limits[index] = limit
        return Meaning(limit, why=self._exchanged(index))

    def _value_of_some(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a name or a phrase of some words, as ``paged adamw 8bit`` or ``flash attention``."""
        for count in (4, 3, 2):
            is_one = not any(token.ends for token in self._tokens[index : index + count - 1])  # adamw, bf16
            if is_one and self._is_free(index, count) and not self._counts_beyond(index, count):
                words = self._span(index, count)
                named = settings.exact_value(words, self._task, self._catalog) or self._phrase(words)
                last = settings.exact_value(self._span(index + count - 1, 1), self._task, self._catalog)  # use vllm
                if named is None and last is None and (remark := vocabulary().remarks.get(key_of(words))):
                    named = Meaning(why=remark)
                if named is not None:
                    return count, named
        return None

    def _counts_beyond(self, index: int, count: int) -> bool:
        """Whether the last of some words is a number of what stands behind them, as in ``gptq 8 users``."""
        counted = self._count_of(index + count - 1) if self._is_number_at(index + count - 1) else None
        return counted is not None and counted.end > index + count

    def _alone(self, text: str) -> tuple[int, Meaning] | None:
        """Recognize a name of a value, a field glued to its number, or a word that says nothing."""
        if (hint := self._refusal(text)) is not None:
            return 1, Meaning(fault=PlanError(f"{text!r} {REFUSED}", hint=hint))
        key, words = key_of(text), vocabulary()
        if key in words.counts:
            return 1, _NOTHING
        if settings.is_numbered(text):
            return 1, Meaning(why=f"left out: {text}")
        meaning = self._percentile(text) or self._image(text) or self._lengths(text)
        meaning = meaning or self._phrase(text) or self._packed_base(text) or self._dataset(text)
        meaning = meaning or same_format(key, self._task, self._tokens, self._catalog) or self._same_value(text)
        if meaning is None and key not in words.circumstances and (self._task == INFER or key not in words.needs):
            meaning = settings.named_value(text, self._task, str(self._values.get(METHOD, "")), self._catalog)
        parts = settings.glued(text)
        if meaning is None and parts is not None:
            meaning = self._pair(parts[0], parts[1])
        is_silent = any(key in group for group in (words.fillers, words.of_serving, words.guessing, words.negations))
        is_silent |= any(key in group for group in (words.suggests, words.queries, words.ram))
        if meaning is None and is_silent:
            meaning = _NOTHING
        if meaning is None and key in words.remarks and key not in words.needs:
            meaning = _NOTHING if key in self._traits() else Meaning(why=words.remarks[key])
        return None if meaning is None else (1, meaning)

    def _words(self) -> Iterator[Word]:
        for index, (count, meaning) in sorted(self._taken.items()):
            first, last = self._tokens[index], self._tokens[index + count - 1]
            written = self._written_range(index, count)
            is_range = written and meaning.words and meaning.fault is None
            larger = f"{written}: planned for the larger ({meaning.words})" if is_range else ""
            tokens = self._tokens[index : index + count]
            sources = [(self._text[token.start : token.end], token.text) for token in tokens]
            vague = "; ".join(f"{some}: {meaning.words}" for source in sources if (some := vague_number(*source)))
            slips = "; ".join(
                f"{self._slips[text]}: {text} is the nearest" for _, text in sources if text in self._slips
            )
            why = "; ".join(filter(None, (larger, vague if meaning.words else "", slips, meaning.why)))
            yield Word(self._text[first.start : last.end], first.start, last.end, replace(meaning, why=why))


def _is_lesser(fault: PlanError) -> bool:
    """Whether a fault is said after those of what cannot be planned at all."""
    return not fault.title.endswith(REFUSED)
