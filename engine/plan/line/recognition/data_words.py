"""The words of a line that say how large what is read is: data sets, images, prompts and answers."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import replace
from functools import cache

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of, sides_of
from capacity_tui.engine.plan.line.lexicon.similarity import data_meant
from capacity_tui.engine.plan.line.lexicon.task_words import TASK, is_of_training, task_named, usual_listeners
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, Amount, Assumption, Meaning
from capacity_tui.engine.plan.line.recognition.model_details import ModelDetails
from capacity_tui.engine.units import format_count, parse_quantity

_SHAPE = re.compile(r"(\S+?)\s*(?:[x×*]|(?<=\s)by(?=\s))\s*(\S+)", re.IGNORECASE)
_LENGTHS = re.compile(r"(\d\d+k?|\d*\.?\d+k)[/:+](\d+(?:\.\d+)?k?)|(\d+k)(\d+k)", re.IGNORECASE)
_FEWEST_SAMPLES = 1000  # Of something that no word counts; fewer may be anything
_FEWEST_PICTURES = 100  # Of somebody who sends them one by one; fewer are those of one request
_OF_PICTURES = frozenset({"image", "images", "imgs", "pictures", "pics", "photos"})
_IMAGE_SIZES = ("image size", "pixels of a side", "edge of images")
_PICTURES, _VOCABULARY = "pictures of a request", "vocabulary"
_ARROWS, _TOKENS = frozenset({"->", "=>", "→", "-->"}), "tokens"


@cache
def _piece_of_sound() -> re.Pattern[str]:
    """Return how lines write the length of a piece of sound, as ``5 second clips`` and ``20k clips of 5 s``."""
    number, unit = r"(?=[\d.]*[1-9])\d+(?:\.\d+)?", r"[\s-]*(?:s|secs?|seconds?)"
    pieces = f"(?:{'|'.join(sorted(vocabulary().pieces))})"
    counted = rf"(?:(?P<count>{number}[km]?)\s+)?{pieces}\s+of\s+(?P<behind>{number}){unit}\b"
    return re.compile(rf"(?P<before>{number}){unit}[\s-]+{pieces}\b|{counted}", re.IGNORECASE)


class DataWords(ModelDetails):
    """A line whose words are being recognized, and those of them that say how large its data is."""

    def _model_of_work(self) -> None:
        """Take the usual model of a work that the line says without naming one, as ``embeddings of 10M documents``."""
        words, keys = vocabulary(), self._keys()
        spans = (self._span(at, few) for at in range(len(self._tokens)) for few in (1, 2, 3))  # speech to text
        work = next((words.works[key] for key in map(key_of, spans) if key in words.works), None)
        is_open = models.MODEL not in self._values and not self._models_asked.is_bounded
        is_open &= keys.isdisjoint(words.answering)
        others = (text for text in keys if text not in words.works and not settings.is_number(text))
        is_trained = self._values.get(TASK) in (TRAIN, FINETUNE)
        is_trained |= any(is_of_training(text, self._catalog) for text in others)
        if work is None or not is_open or (is_trained and work not in usual_listeners(self._catalog)):
            return
        if (named := models.named_model(work, self._catalog)) is not None:
            self._assume(models.MODEL, named.values[models.MODEL], f"{work}, a usual model for this (or name another)")

    def _shape(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize rows and features of the data that an algorithm is fitted to, as ``1M x 2000`` and ``(500, 3)``."""
        for words in (3, 1) if self._task == FIT else ():
            match = _SHAPE.fullmatch(self._span(index, words)) if self._is_free(index, words) else None
            if match is not None and all(map(settings.is_number, match.groups())):
                named = zip(("rows", "features"), filter(None, match.groups()), strict=True)
                parts = [self._pair(name, number) for name, number in named]
                values = {path: value for part in parts if part for path, value in part.values.items()}
                return words, Meaning(f"{match[1]} rows, {match[2]} features", values)
        return None

    def _kept(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Keep a number that no field has, that of pictures which a language model looks at among them."""
        if amount.name in _IMAGE_SIZES and value.isdigit() and (edge := self._edge(int(value), int(value))) is not None:
            return edge
        if amount.name in _IMAGE_SIZES and value.isdigit() and self._sees() is not None:
            self._picture_sides = int(value), int(value)
            return Meaning(f"pictures of {value} pixels")
        if amount.name in _IMAGE_SIZES and value.isdigit() and (both := self._height_and_width(int(value), int(value))):
            return both
        is_few = value.isdigit() and int(value) < _FEWEST_PICTURES and self._sees() is not None
        few = vocabulary().every["tiles"] | (_OF_PICTURES if self._task == INFER else frozenset())
        if (amount.name == _PICTURES and value.isdigit()) or (is_few and key_of(name) in few):
            return self._pictures_asked(value, name)
        named = [at for at, (_, taken) in self._taken.items() if models.MODEL in taken.values]
        is_open = not named or any(models.is_size(self._tokens[at].text) for at in named)
        if amount.name == _VOCABULARY and is_open:
            hint = "name the model, or give its config.json as model.config=PATH"
            return Meaning(fault=PlanError("a vocabulary of which model?", f"{value} {name}", hint))
        return super()._kept(amount, value, name)

    def _pictures_asked(self, value: str, name: str) -> Meaning:
        """Take pictures of a prompt for those that it shows, or for a batch where a network draws them."""
        is_drawn = self._model is not None and self._model.kind == "network" and self._task == INFER
        if is_drawn and Key.INFERENCE_BATCH not in self._values:
            drawn = settings.field_value(Key.INFERENCE_BATCH, value, INFER)
            return replace(drawn, why=f"{value} {name}: drawn at once, each counted as one that is asked for")
        self._pictures = int(value)
        return Meaning(f"{value} pictures a request")

    def _picture_tokens(self) -> None:
        """Read the tokens of pictures with each prompt, or in each sequence that is trained where none has a length."""
        (width, height), sight = self._picture_sides, self._sees()
        path = Key.INFERENCE_PROMPT_TOKENS if self._task == INFER else Key.TRAINING_SEQ_LEN
        count, given = max(self._pictures, 1), self._values.get(path)
        if given is not None and self._task != INFER and self._pictures:
            why = f"{self._pictures} pictures: within sequences of {given} tokens (or say a longer sequence)"
            self._assumed.append(Assumption(path, None, why))
        if (not width and not self._pictures) or (given is not None and self._task != INFER):
            return  # a sequence that is given holds its pictures
        tokens = 0 if sight is None else sight.tokens_of(width, height)
        if not tokens:
            hint = "say how large it is, as 1024 px, or the tokens of the prompt"
            self._faults.append(PlanError("tokens of which picture?", str(self._values.get(models.MODEL)), hint))
            return
        self._values[path] = length = count * tokens + (given if isinstance(given, int) else 0)
        text = "" if isinstance(given, int) else "; say the tokens of its text too"
        pictures = "a picture" if count == 1 else f"each of {format_count(count, decimals=0)} pictures"
        why = f"{length} tokens, {tokens} for {pictures}{text}; what its tower computes is not counted"
        self._assumed.append(Assumption(path, length, why))

    def _image(self, text: str) -> Meaning | None:
        """Recognize the size of images, as ``512x512`` and ``1080p``, of a model that has one or looks at them."""
        sides = sides_of(text)
        if sides is not None and self._sees() is not None:
            self._picture_sides = sides
            return Meaning(f"pictures of {sides[0]}x{sides[1]} pixels")
        if sides is None:
            return None
        if (square := self._edge(*sides)) is not None:
            return square
        if (both := self._height_and_width(*sides)) is not None:
            return both
        if settings.named_field(settings.IMAGE_SIZE, self._task, self._model) is None:
            return None
        edge = round(math.sqrt(math.prod(sides)))
        size = settings.field_value(f"{OWN_PARAMETERS}{settings.IMAGE_SIZE}", str(edge), self._task)
        return replace(size, why="" if edge in sides else f"{text}: as many pixels as {edge} x {edge}")

    def _lengths(self, text: str) -> Meaning | None:
        """Recognize the tokens of prompts and answers, as ``2k/512`` says them."""
        match = _LENGTHS.fullmatch(text) if self._task == INFER and key_of(text) not in vocabulary().fillers else None
        if match is None or all(hardware.named_hardware(part, self._catalog) for part in text.split("/")):
            return None  # 4090/3090
        values: dict[str, object] = {}
        for path, number in zip(
            (Key.INFERENCE_PROMPT_TOKENS, Key.INFERENCE_OUTPUT_TOKENS), filter(None, match.groups()), strict=True
        ):
            values |= settings.field_value(path, number, self._task).values
        return Meaning(f"prompt {match[1] or match[3]}, output {match[2] or match[4]}", values)

    def _to_from(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize the tokens of prompts and answers with an arrow between, as in ``3k tokens -> 200 tokens``."""
        arrow = index + 1 + int(self._unit_at(index + 1) == _TOKENS)
        is_pair = self._is_number_at(index) and self._is_number_at(arrow + 1)
        is_pair &= self._is_free(index, arrow + 2 - index)
        if self._task != INFER or not is_pair or self._tokens[arrow].text not in _ARROWS:
            return None
        end = arrow + 2
        end += int(self._unit_at(end) == _TOKENS and self._is_free(end))
        meaning = self._lengths(f"{self._tokens[index].text}/{self._tokens[arrow + 1].text}")
        return None if meaning is None else (end - index, meaning)

    def _share_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a share before those that it is of, as in ``10% of 200 users``."""
        text, number = self._tokens[index].text, index + 2
        is_of = text.endswith("%") and settings.is_number(text[:-1]) and self._span(index + 1, 1) == "of"
        number += int(is_of and key_of(self._span(number, 1)) in vocabulary().owned)
        count = self._count_of(number) if is_of and self._is_number_at(number) else None
        if count is None or count.amount.name not in settings.SHARED or not self._is_free(index, number - index):
            return None
        return number - index, self._share(text)

    def _flag(self, index: int, mark: str) -> tuple[int, Meaning] | None:
        """Leave out an option of a program that no plan has, with its value, as ``--num-scheduler-steps 8``.

        What begins with one mark may be a value with a dash, as ``-awq``: it is left out where nothing else reads it.
        """
        text = self._tokens[index].text
        is_known = bool(settings.amount_named(text, self._task, self._model)) or self._is_setting(text)
        is_known |= task_named(text) is not None or any(key_of(text) in rows for rows in vocabulary().phrases.values())
        is_option = text.startswith(mark) and text.lstrip(mark)[:1].isalpha()
        if not is_option or is_known or key_of(text) in vocabulary().of_cache["words"] or "=" in text:
            return None
        value = self._span(index + 1, 1) if self._is_free(index + 1) else ""
        words = 1 + int(settings.is_number(value) or self._is_value(value))
        return words, Meaning(why=f"left out: {self._span(index, words)}")

    def _some_data(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a data set whose name has two words, as ``imagenet 22k``."""
        data = self._dataset(self._span(index, 2)) if self._is_free(index, 2) else None
        return None if data is None else (2, data)

    def _hours_of_sound(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize the sound that is heard, as ``1000 hours of audio``: a request, or a sample, is a piece of it."""
        count = Key.INFERENCE_REQUESTS if self._task == INFER else Key.TRAINING_SAMPLES
        words = self._words_of_sound(index, is_open=count not in self._values)
        if not words or (words == 1 and self._is_measured(index, "time")):
            return None
        span, model = duration_of(text := self._tokens[index].text) or text, self._values.get(models.MODEL)
        row = self._catalog.architectures.get(str(model))
        if model is not None and not self._is_of_sound():
            answers = row is not None and "audio_config" in row.config
            hint = "name one that transcribes, as whisper-large-v3; of transcripts say how many, and how long"
            title = "hours of sound are planned of models that transcribe" if answers else "a model that hears nothing"
            return words, Meaning(fault=PlanError(title, f"{model}: {span} of sound", hint))
        read, is_wave = self._seconds_heard(), str(model) in self._catalog.networks
        seconds = self._seconds_of_a_piece(read) if is_wave or self._task != INFER else read
        pieces = math.ceil(parse_quantity(span, "s") / seconds)
        if self._task == INFER:
            return words, Meaning(f"{span} of sound", {count: pieces})
        is_padded = seconds < read and not is_wave
        padded = f", each padded to {read:g} s" if is_padded else " (or say how long clips are, as clips of 5 s)"
        why = f"{span} of sound: {pieces} samples of {seconds:g} s{padded}"
        long = {f"{OWN_PARAMETERS}seconds": seconds} if is_wave and seconds != read else {}
        return words, Meaning(f"{span} of sound", {count: pieces, **long}, why)

    def _words_of_sound(self, index: int, *, is_open: bool) -> int:
        """Return how many words say for how long something sounds; 0 where they say another time.

        Args:
            is_open: whether nothing else says how much is heard, so that a bare time may.
        """
        words, text = vocabulary(), self._tokens[index].text
        is_short = self._task == INFER and settings.is_time(text) and duration_of(text) is None  # 30 s of audio
        if duration_of(text) is None and not is_short:
            return 0
        behind = 1 + int(key_of(self._span(index + 1, 1)) == "of")
        behind += int(key_of(self._span(index + behind + 1, 1)) in words.sound)  # of call recordings
        if key_of(self._span(index + behind, 1)) in words.sound and self._is_free(index, behind + 1):
            return behind + 1
        before, after = key_of(self._span(index - 1, 1)) if index else "", key_of(self._span(index + 1, 1))
        within = words.within - ({"for", "of"} if self._task == INFER else {"of"})
        is_limit = before in within or (self._task != INFER and after in within - words.joints)
        is_heard = is_open and not is_short and self._is_of_sound() and (before in words.hearing or not is_limit)
        return int(is_heard)  # transcribe 10k hours

    def _piece_of_sound(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how long samples of sound are, as ``5 second clips`` and ``clips of 5 s``: hours are so many."""
        match = _piece_of_sound().match(self._text, self._tokens[index].start)
        is_wave = str(self._values.get(models.MODEL)) in self._catalog.networks
        if match is None or not self._is_of_sound() or (self._task == INFER and not is_wave):
            return None
        seconds = {f"{OWN_PARAMETERS}seconds": float(match["before"] or match["behind"])} if is_wave else {}
        end = next((at for at in range(index, len(self._tokens)) if self._tokens[at].start >= match.end()), None)
        words = (len(self._tokens) if end is None else end) - index
        if match["count"] is None:
            return words, Meaning(match[0], seconds)
        path = Key.INFERENCE_REQUESTS if self._task == INFER else Key.TRAINING_SAMPLES
        meaning = settings.field_value(path, match["count"], self._task, "samples")
        return words, Meaning(meaning.words, {**meaning.values, **seconds}, f"{match[0]}: samples", meaning.fault)

    def _seconds_of_a_piece(self, longest: float) -> float:
        """Return the seconds of a sample of sound: those that the line says, or of its data set, or that are read.

        Args:
            longest: seconds that the model reads; what is longer is cut.
        """
        words = vocabulary()
        match = _piece_of_sound().search(self._text)
        if match is not None:
            seconds = float(match["before"] or match["behind"])
            return seconds if str(self._values.get(models.MODEL)) in self._catalog.networks else min(seconds, longest)
        names = (key_of(self._span(at, count)) for count in (1, 2) for at in range(len(self._tokens)))
        return min((words.sounds[name]["seconds"] for name in names if name in words.sounds), default=longest)

    def _interval(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how often something is done: in a run, ``every 1000 steps``, or by users, ``every 30 seconds``."""
        every, is_every = self._span(index, 1), key_of(self._span(index, 1)) in vocabulary().every["again"]
        span = self._span(index + 1, 1) if is_every else ""
        unit = vocabulary().durations.get(key_of(span))
        if unit and self._task == INFER and self._has_requests():
            return None  # every day 1M requests
        span = f"1{unit}" if unit else span
        is_time = settings.is_time(span) or duration_of(span) is not None
        if is_time and self._task != INFER:
            return 2, Meaning(why=f"left out: {every} {self._span(index + 1, 1)}")
        if is_time:
            pause = f"{parse_quantity(duration_of(span) or span, 's'):g}"
            return 2, Meaning(f"a request every {pause} s", {Key.INFERENCE_SECONDS_BETWEEN_REQUESTS: pause})
        amount = settings.amount_of(self._span(index + 2, 1)) if key_of(every) == "every" else None
        is_counted = amount is not None and self._is_number_at(index + 1) and self._is_free(index, 3)
        if amount is None or not is_counted or amount.fields.get(TRAIN) not in settings.PASSES:
            return None
        return 3, Meaning(why=f"left out: {self._span(index, 3)}")

    def _has_requests(self) -> bool:
        """Whether the line says of a number that it is the requests of all."""
        counts = (self._count_of(at) for at in range(len(self._tokens)) if self._is_number_at(at))
        return any(count is not None and count.amount.field(INFER) == Key.INFERENCE_REQUESTS for count in counts)

    def _dataset(self, text: str) -> Meaning | None:
        """Recognize a data set by name; what the line says of its length goes before."""
        words = vocabulary()
        data = words.datasets.get(key_of(text.rpartition("/")[2]), ("", 0))  # tatsu-lab/alpaca
        path, size = words.datasets.get(key_of(text), data)
        if (speech := words.sounds.get(key_of(text))) is not None:
            path, size = Key.TRAINING_SAMPLES, math.ceil(parse_quantity(f"{speech['hours']}h", "s") / speech["seconds"])
            places = set(range(len(self._tokens))) - self._places_of(models.MODEL)  # wav2vec2-large 960h librispeech
            size = 0 if any(self._words_of_sound(at, is_open=True) for at in places) else size
        is_open = bool(size) and not self._has_length()
        why = f"{text}: {format_count(size)} {path.rpartition('.')[2]}" if is_open else ""
        of_data = Meaning(f"data of {text}", {path: size} if is_open else {}, why)
        return of_data if path and self._task in (TRAIN, FINETUNE) else None

    def _data_like(self, text: str) -> Meaning | None:
        """Recognize a slip in the name of a data set, as ``imagnet``."""
        data = self._dataset(meant) if (meant := data_meant(text)) is not None else None
        return None if data is None else replace(data, why=f"{text[:40]}: {meant} is the nearest name")

    def _samples_of(self, index: int) -> tuple[int, Meaning] | None:
        """Take thousands of something that nothing else counts for samples to train on, as ``12k patents``."""
        text, last = self._tokens[index].text, index + 1
        is_described = self._is_other_word(last, vocabulary().prose) and not self._is_apart(last)
        last += int(is_described and self._is_other_word(last + 1))
        after = self._span(last, 1)  # 20M pathology tiles
        is_plural = settings.is_number(text) and self._counts_something(last - 1) and text[-1] not in "bB"
        lengths = {Key.TRAINING_SAMPLES, Key.TRAINING_TOKENS, Key.TRAINING_STEPS}
        one = settings.amount_of(f"{after}s")  # 15k photo
        is_plural &= key_of(after).endswith(("s", "dataset")) or (one is not None and one.field(TRAIN) in lengths)
        is_open = self._task in (TRAIN, FINETUNE) and lengths.isdisjoint(self._values)
        is_open &= not self._is_model_word(after)
        is_alone = self._is_free(last) or self._taken.get(last) == (1, Meaning())
        if not (is_plural and is_open and is_alone and settings.at_least(text, _FEWEST_SAMPLES)):
            return None
        for at in range(index + 1, last + 1):
            self._taken.pop(at, None)
        meaning = settings.field_value(Key.TRAINING_SAMPLES, text, self._task, "samples")
        return last + 1 - index, Meaning(meaning.words, meaning.values, f"{text} {after}: samples", meaning.fault)

    def _is_other_word(self, index: int, plain: Collection[str] = ()) -> bool:
        """Whether a word means nothing here: an unknown one, one that might be a name, or one of some plain ones."""
        text = self._span(index, 1)
        is_open = self._is_free(index) or self._taken.get(index) == (1, Meaning())
        is_other = not self._is_known(text) or key_of(text) in set(plain) - vocabulary().joints
        return text.isalpha() and is_open and is_other and not self._is_setting(text)

    def _part_of_data(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how much of a data set there is, as in ``52k alpaca``, but not ``swin-b 384 imagenet``."""
        name = key_of(self._tokens[index + 1].text) if self._is_free(index + 1) else ""
        path = vocabulary().datasets.get(name, ("", 0))[0]
        is_some = settings.at_least(text := self._tokens[index].text, 1) and not self._is_edge(text)
        if not (path and is_some) or self._task not in (TRAIN, FINETUNE) or self._is_size_of_model(index):
            return None
        return 2, settings.field_value(path, self._tokens[index].text, self._task, f"data of {name}")

    def _small_images(self) -> None:
        """Train a network on images as small as those of the data, as ``resnet-18 cifar10``."""
        edge_of, sides = settings.IMAGE_SIZE, vocabulary().image_sides
        has_edge = settings.named_field(edge_of, self._task, self._model) is not None
        names = (edge_of,) if has_edge else sides if self._height_and_width(1, 1) is not None else ()
        if self._task != TRAIN or any(path.endswith((edge_of, *sides)) for path in self._values):
            return
        for text in [self._span(at, count) for at, (count, _) in self._taken.items()]:
            edge = vocabulary().image_edges.get(key_of(text))
            for path in (f"{OWN_PARAMETERS}{name}" for name in names if edge is not None):
                self._values[path] = edge
                self._assume(path, edge, f"images of {edge} pixels, as {text} has")

    def _length_of_documents(self) -> None:
        """Train on the tokens of shorter samples than a sequence, which are packed, as ``8k ctx, 30k texts of 3k``."""
        samples, sequence = self._values.get(Key.TRAINING_SAMPLES), self._values.get(Key.TRAINING_SEQ_LEN)
        if not self._document_tokens:
            return
        if not isinstance(samples, int) or Key.TRAINING_TOKENS in self._values:
            hint = "say of how many samples, as 30k samples of 3000 tokens"
            self._faults.append(PlanError("tokens of what?", str(self._document_tokens), hint))
        elif isinstance(sequence, int) and self._document_tokens < sequence:
            epochs = float(str(self._values.pop(Key.TRAINING_EPOCHS, 1)))
            tokens = round(samples * self._document_tokens * epochs)
            self._values.pop(Key.TRAINING_SAMPLES)
            self._values |= {Key.TRAINING_TOKENS: tokens, Key.TRAINING_DOCUMENT_TOKENS: self._document_tokens}
            why = (
                f"{format_count(tokens)} tokens: {samples} samples of {self._document_tokens}, {epochs:g} times, packed"
            )
            self._assume(Key.TRAINING_TOKENS, tokens, why)

    def _optimal_length(self) -> None:
        """Train as many tokens as suit the size of the model best, or as the FLOPs of the line make up."""
        words = (self._span(index, count) for index, (count, _) in self._taken.items())
        is_optimal = any(key_of(word) in vocabulary().optimal for word in words)
        row = self._catalog.architectures.get(str(self._values.get(models.MODEL, "")))
        parameters = None if row is None else row.params_active or row.params_total
        usual, flops = vocabulary().usual[TRAIN], f"{self._compute:.3g} FLOPs"
        if self._compute and (parameters is None or Key.TRAINING_TOKENS in self._values):
            title = "compute of which model?" if parameters is None else "a length given twice"
            self._faults.append(PlanError(title, flops, "say the model, and either its tokens or its FLOPs"))
        elif self._compute and parameters:
            tokens = round(self._compute / usual["flops_of_a_token"] / parameters)
            ratio = f"{usual['flops_of_a_token']:g} a parameter and token (Kaplan et al. 2020)"
            self._assume(Key.TRAINING_TOKENS, tokens, f"{format_count(tokens)} tokens: {flops}, {ratio}")
        elif is_optimal and row is not None and row.params_total and Key.TRAINING_TOKENS not in self._values:
            tokens = round(usual["tokens_per_parameter"] * row.params_total)
            why = "tokens a parameter: what trains the best model for its FLOPs (Hoffmann et al. 2022)"
            self._assume(Key.TRAINING_TOKENS, tokens, f"{usual['tokens_per_parameter']:g} {why}")
