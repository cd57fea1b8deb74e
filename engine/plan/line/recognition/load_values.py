"""The load that the words of a line make up together: users, and requests in a span of time, at once or in all."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL
from capacity_tui.engine.plan.line.lexicon.question_words import Questions
from capacity_tui.engine.plan.line.lexicon.task_words import is_camera
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import INFER, SHORTEST, TRAIN, UNCOUNTED, Amount, Assumption, Meaning
from capacity_tui.engine.plan.line.recognition.data_words import DataWords
from capacity_tui.engine.plan.line.recognition.number_names import Count
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import HOUR_SECONDS, format_count, format_number, parse_quantity

_LOADS = (Key.INFERENCE_CONCURRENCY, Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_USERS)
_PER = frozenset({"per", "/", "by", "for", "from", "a"})  # Words before one of the users
_IN_A_TIME, _IN_ALL = "time<=", "usd<="  # What limits on the time and the money of the whole begin with
_AT_ONCE = "at once"
TOKENS_READ = (settings.TOKENS, "tokens in")
_FAR = 3  # Words between how many times and what has a peak, as in ``peak gpu memory 2x``
_TIMES_THE_USUAL = re.compile(r"(\d+(?:\.\d+)?)[x×]", re.IGNORECASE)


class LoadValues(DataWords):
    """A line whose words were recognized, and the load that follows from several of them."""

    def _derive_load(self) -> None:
        """Set what follows, each from what was set before it."""
        if self._values.get(Key.INFERENCE_BATCH) == AUTO and not self._values.keys().isdisjoint(_LOADS):
            self._values.pop(Key.INFERENCE_BATCH)  # the load decides it
        self._passages()
        self._sound_as_it_comes()
        self._pictures_as_they_come()
        self._part_of_users()
        self._rate_of_tokens()
        self._requests_of_tokens()
        self._requests_of_a_span()
        self._peak_load()
        self._requests_at_once()
        self._parts_of_requests()

    def _prompt_of_context(self) -> None:
        """Leave room for the answer in what a request reads and writes at most, as of ``max_model_len 8192``."""
        path, answer, most = Key.INFERENCE_PROMPT_TOKENS, Key.INFERENCE_OUTPUT_TOKENS, self._context
        given, usual = self._values.get(path, 0), int(str(all_fields()[answer].default))
        if not most or not isinstance(given, int):
            return
        room = most - given if given else most // 2
        output = int(self._is_embedder()) if self._is_reading() else self._degree(answer, min(usual, max(room, 1)))
        if max(given, 1) + output > most:
            text, hint = f"{given} read and {output} written", "make it longer, or shorten what is read or written"
            self._faults.append(PlanError(f"a request has at most {most} tokens", text, hint))
            return
        if 0 < output < usual and answer not in self._values:
            self._assume(answer, output, f"output {output}: {most} tokens in all")
        if given:
            self._assumed.append(Assumption(path, None, f"left out: {most} tokens at most, which a request keeps to"))
        else:
            why = f"prompt {most - output}: {most} in all, {output} of them for the answer"
            self._assume(path, most - output, why)

    def _passages(self) -> None:
        """Read with each prompt the passages that are found for it, as ``rag with top 5 chunks of 500 tokens``."""
        words, keys = vocabulary(), [key_of(token.text) for token in self._tokens]
        length = self._values.get(Key.INFERENCE_PROMPT_TOKENS)
        for index, (count, meaning) in self._taken.items():
            few, before = meaning.values.get(Key.INFERENCE_REQUESTS), keys[max(index - _FAR, 0) : index]
            is_piece = not words.passages.isdisjoint(keys[index : index + count])
            is_few = is_piece and isinstance(few, int) and few <= words.bounds["passages"]
            if not isinstance(few, int) or not is_few or words.finding.isdisjoint(before):
                continue
            self._values.pop(Key.INFERENCE_REQUESTS)
            is_of_one = isinstance(length, int) and keys[index + count : index + count + 1] == ["of"]
            tokens = few * int(str(length)) if is_of_one else None
            self._values |= {} if tokens is None else {Key.INFERENCE_PROMPT_TOKENS: tokens}
            why = f"{few} passages of {length} tokens" if tokens else f"left out: {few} passages"
            why = f"{why}; say the prompt, with all of it"
            self._assumed.append(Assumption(Key.INFERENCE_PROMPT_TOKENS, tokens, why))

    def _sound_as_it_comes(self) -> None:
        """Answer each piece of sound before the next one is there where the line says so, as ``live streams``."""
        words, keys = vocabulary(), [key_of(token.text) for token in self._tokens]
        ruled_out = {key for before, key in pairwise(keys) if before in words.negations}
        is_live = self._is_of_sound() and not (words.live - ruled_out).isdisjoint(self._keys() - ruled_out)
        if self._task == INFER and is_live and Key.INFERENCE_REQUEST_SECONDS not in self._values:
            for index in (at for at, key in enumerate(keys) if key in words.live):
                self._unknown.pop(self._tokens[index].text, None)
                self._taken[index] = 1, Meaning("in real time")
            most = f"{self._seconds_heard():g}s"
            self._assume(Key.INFERENCE_REQUEST_SECONDS, most, f"in real time: {most} of sound within {most}")

    def _pictures_as_they_come(self) -> None:
        """Look at the pictures of all cameras, as in ``4 cameras at 30 fps``, which says how many one of them sends."""
        words, texts = vocabulary(), {at: self._span(at, count) for at, (count, _) in self._taken.items()}
        cameras, rate = (self._values.get(path) for path in (Key.INFERENCE_CONCURRENCY, Key.INFERENCE_REQUEST_RATE))
        keys = {key_of(word) for at in texts for word in texts[at].split() if self._taken[at][1].values}
        is_rate = not keys.isdisjoint(words.filming["rate"])
        is_filmed = any(is_camera(key, with_rate=is_rate) for key in keys)
        if self._model is None or self._model.kind != "network" or not is_filmed or not isinstance(cameras, int):
            return
        self._values.pop(Key.INFERENCE_CONCURRENCY)
        if rate is None:
            hint = "say how many pictures a second one sends, as 30 fps"
            self._faults.append(PlanError("how often does a camera send a picture?", f"{cameras} of them", hint))
        elif is_rate and self._keys().isdisjoint(words.filming["of all"]):
            every = f"{cameras * float(str(rate)):.4g}"
            why = f"{every} pictures a second: {rate} of each of {cameras} (say {rate} images/s where that is of all)"
            self._assume(Key.INFERENCE_REQUEST_RATE, every, why)

    def _part_of_users(self) -> None:
        """Take the share of all users that is there at once for the users, as ``300 seats, 5% concurrent``.

        Requests at once say of all of them how many come, as in ``300 seats, 30 at the same time``.
        """
        users, at_once = self._values.get(Key.INFERENCE_USERS), self._values.get(Key.INFERENCE_CONCURRENCY)
        values = (taken.values for _, taken in self._taken.values() if _AT_ONCE in taken.words)
        batches = (batch for some in values if (batch := some.get(Key.INFERENCE_BATCH)))
        at_once = at_once or next(batches, None)  # 300 seats, 30 at once
        if users and at_once:
            self._values.pop(Key.INFERENCE_USERS)
            self._values.pop(Key.INFERENCE_BATCH, None)
            self._assume(Key.INFERENCE_CONCURRENCY, at_once, f"{at_once} requests at once: those of {users} users")
            return
        if self._share_of_users and not isinstance(users, int):
            share = f"{100 * self._share_of_users:g}%"
            self._faults.append(PlanError("a share of how many?", share, "say how many users there are, as 300 users"))
        elif isinstance(users, int) and self._are_together():
            self._values.pop(Key.INFERENCE_USERS)
            why = f"{users} requests at once: one of each of {users} users (or say {users} users)"
            self._assume(Key.INFERENCE_CONCURRENCY, users, why)
        elif self._share_of_users and isinstance(users, int):
            self._values[Key.INFERENCE_USERS] = some = max(round(users * self._share_of_users), 1)
            why = f"{some} users: {100 * self._share_of_users:g}% of {users}"
            self._assumed.append(Assumption(Key.INFERENCE_USERS, some, why))

    def _are_together(self) -> bool:
        """Whether words beside the users say that all have a request at work, as in ``4 users at once``.

        Not where each of them is said to pause, or where they are a share of all.
        """
        last, together = len(self._tokens) + 1, vocabulary().together
        paced = {Key.INFERENCE_SECONDS_BETWEEN_REQUESTS, Key.INFERENCE_REQUEST_RATE}
        if self._share_of_users or not paced.isdisjoint(self._values):
            return False
        for at, (count, taken) in self._taken.items():
            if Key.INFERENCE_USERS in taken.values:
                places = [(place, few) for few in (1, 2, 3, 4) for place in range(at, min(at + count + 2, last - few))]
                words = [place for place in places if key_of(self._span(*place)) in together]
                self._taken |= {place: (few, Meaning("at once")) for place, few in words if place >= at + count}
                self._unknown = {text: name for text, name in self._unknown.items() if key_of(text) not in together}
                return bool(words)
        return False

    def _rate_of_tokens(self) -> None:
        """Send requests of as many tokens as there are in a second: of their answers, or of prompts and answers."""
        paths = (Key.INFERENCE_OUTPUT_TOKENS, Key.INFERENCE_PROMPT_TOKENS)
        lengths = [self._degree(path, float(str(all_fields()[path].default))) for path in paths]
        for kind, (count, seconds) in self._token_rates.items():
            if (given := self._values.get(Key.INFERENCE_REQUEST_RATE)) is not None:
                hint = "say requests/s, or tokens a second"
                self._faults.append(PlanError("a rate given twice", f"{given} requests/s, and tokens a second", hint))
                continue
            requests, tokens = self._values.get(Key.INFERENCE_REQUESTS), count / seconds
            if isinstance(requests, int):  # 1M documents of 500 tokens a day
                self._values.pop(Key.INFERENCE_REQUESTS)
                rate = f"{requests / seconds:.4g}"
                self._values |= {Key.INFERENCE_PROMPT_TOKENS: count, Key.INFERENCE_REQUEST_RATE: rate}
                why = f"{rate} requests a second: {requests} in {seconds:g} s, at all times alike"
                self._assumed.append(Assumption(Key.INFERENCE_REQUEST_RATE, rate, why))
                continue
            row = self._catalog.architectures.get(str(self._values.get(MODEL, "")))
            of = "answers" if kind == "output" else "prompts and answers"
            length = lengths[0] if kind == "output" else sum(lengths)
            if row is not None and row.kind == "encoder":
                of, length = "prompts", lengths[1]
            self._values[Key.INFERENCE_REQUEST_RATE] = rate = f"{tokens / length:.4g}"
            why = f"{rate} requests a second: {tokens:.4g} tokens a second in {of} of {length} (or give 5 requests/s)"
            self._assumed.append(Assumption(Key.INFERENCE_REQUEST_RATE, rate, why))

    def _requests_of_tokens(self) -> None:
        """Send as many requests as so many tokens make up, as ``translate 2B tokens``."""
        path, tokens = self._tokens_of_job
        requests = self._values.get(Key.INFERENCE_REQUESTS)
        if not tokens or (isinstance(requests, int) and path in self._values):
            return
        if isinstance(requests, int):
            self._values[path] = length = max(round(tokens / requests), 1)
            why = f"{length} tokens a request: {format_count(tokens)} in {format_count(requests)}"
            self._assumed.append(Assumption(path, length, why))
            return
        length = self._degree(path, float(str(all_fields()[path].default)))
        self._values[Key.INFERENCE_REQUESTS] = requests = math.ceil(tokens / length)
        why = f"{format_count(requests)} requests: {format_count(tokens)} tokens of {length} each"
        if path != (answer := Key.INFERENCE_OUTPUT_TOKENS) and answer not in self._values:
            why = f"{why}, answered in {all_fields()[answer].default} tokens (or give output 200)"
        self._assumed.append(Assumption(Key.INFERENCE_REQUESTS, requests, why))

    def _requests_of_a_span(self) -> None:
        """Send requests at a rate where the line says how often there are so many, as ``1M documents daily``."""
        words, requests = vocabulary(), self._values.get(Key.INFERENCE_REQUESTS)
        keys = [key_of(token.text) for token in self._tokens]
        often = [(key, before) for before, key in pairwise(("", *keys)) if len(key) >= SHORTEST]
        often += [(f"{key}{after}", before) for before, key, after in zip(("", *keys), keys, keys[1:], strict=False)]
        rates = (key for key, before in often if key in words.adverbs and before not in words.within)
        adverb = next((key for key in rates if key), "")
        if adverb and isinstance(requests, int):
            self._values.pop(Key.INFERENCE_REQUESTS)
            self._values[Key.INFERENCE_REQUEST_RATE] = rate = f"{requests / words.adverbs[adverb]:.4g}"
            seconds = format_number(words.adverbs[adverb])
            why = f"{rate} requests a second: {requests} in {seconds} s, at all times alike"
            self._assumed.append(Assumption(Key.INFERENCE_REQUEST_RATE, rate, why))

    def _peak_load(self) -> None:
        """Take the load of the busiest time where the line says how many times the usual that is."""
        for path in (Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_USERS, Key.INFERENCE_CONCURRENCY):
            if self._peak != 1 and path in self._values:
                usual = float(str(self._values[path]))
                peak = f"{usual * self._peak:.4g}" if path == Key.INFERENCE_REQUEST_RATE else round(usual * self._peak)
                self._assume(path, peak, f"peak: {peak}, {self._peak:g} times {usual:g}")
                return
        if self._peak != 1:
            count, _ = self._taken.get(self._peak_at, (1, Meaning()))
            why = f"left out: {self._span(self._peak_at, count)}; of which load? (say 100 users, or 5 requests/s)"
            self._taken[self._peak_at] = count, Meaning(why=why)

    def _times_the_usual(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how many times the usual load there is at most, as in ``peak 3x average`` and ``5x bursts``."""
        words, match = vocabulary(), _TIMES_THE_USUAL.fullmatch(self._tokens[index].text)
        places = [at for at in range(max(index - _FAR, 0), index + 3) if key_of(self._span(at, 1)) in words.peaks]
        around = {key_of(self._span(at, 1)) for at in range(max(index - _FAR, 0), index + _FAR + 1)}
        if match is None or not places or self._task != INFER or not around.isdisjoint(words.other_peaks):
            return None
        self._peak, self._peak_at, last = float(match[1]), index, index + 1
        if places[0] < index:
            self._take(places[0], 1, Meaning("peak"))
        while key_of(self._span(last, 1)) in words.averages | words.peaks and self._is_free(last):
            last += 1
        return last - index, Meaning(f"{self._peak:g} times the load")

    def _kept(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Keep a number that no field has: what a model that writes nothing reads a second, and what is searched."""
        kept = None
        if self._task == INFER:
            kept = self._read_a_second(amount, value, name) or self._searched(amount, value, name)
            kept = kept or self._few_tokens(amount, value, name)
        return kept or self._experts_of_a_token(value, name) or super()._kept(amount, value, name)

    def _read_a_second(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Keep the tokens a second of a model that writes none for those that it reads, and its TPS for requests."""
        if not self._is_reading() or amount.field(INFER) != Key.INFERENCE_TPOT_SECONDS or not amount.reciprocal:
            return None
        if key_of(name) in vocabulary().transactions:
            rate = settings.counted(vocabulary().amounts["rps"], value, INFER, self._model)
            return replace(rate, why=f"{value} {name}: requests a second, as it writes no tokens")
        self._token_rates["all"] = int(parse_quantity(value, "")), amount.per
        return Meaning(f"{value} {name}, read")

    def _searched(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Leave out documents of which a request reads only what is found, as in ``rag over 1M pdfs``."""
        words = vocabulary()
        is_some = amount.field(INFER) == Key.INFERENCE_REQUESTS and amount.field(TRAIN) == Key.TRAINING_SAMPLES
        is_some &= words.amounts["requests"] is not settings.amount_of(name)  # 5000 questions
        is_passage = key_of(name) in words.passages and parse_quantity(value, "") <= words.bounds["passages"]
        if not is_some or is_passage or self._is_reading() or words.searching.isdisjoint(self._keys()):
            return None
        return Meaning(why=f"left out: {value} {name}; a request reads only what is found in them")

    def _experts_of_a_token(self, value: str, name: str) -> Meaning | None:
        """Leave out how many experts a token uses, as in ``128 experts, 8 active``."""
        experts, counted = vocabulary().amounts["experts"], (settings.amount_of(one.text) for one in self._tokens)
        if key_of(name) not in vocabulary().active or experts not in counted:
            return None
        return Meaning(why=f"left out: {value} {name}; how many experts a token uses is the model's")

    def _most_tokens(self, counts: Mapping[int, Count | None]) -> float:
        """Return the most tokens that a number of the line counts; 0 where none does."""
        read = (at for at, count in counts.items() if count is not None and count.amount.name in TOKENS_READ)
        return max((parse_quantity(self._tokens[at].text, "") for at in read), default=0.0)

    def _few_tokens(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Ask for what so few tokens or answers are, unless some are guessed: ``a 1b draft, 4 tokens``."""
        is_plain = amount.name in TOKENS_READ and not self._is_written(value) and not self._is_reading()
        is_plain |= key_of(name) in vocabulary().written and amount.field(INFER) == Key.INFERENCE_OUTPUT_TOKENS
        if not is_plain or not value.isdecimal() or int(value) >= vocabulary().bounds["tokens of a prompt"]:
            return None
        if not self._keys().isdisjoint(vocabulary().guessing | vocabulary().drafts):
            return settings.counted(vocabulary().amounts["drafttokens"], value, INFER, self._model)
        hint = "write prompt 16 or output 16 where they are so short"
        return Meaning(fault=PlanError(UNCOUNTED, f"{value} {name}", hint))

    def _parts_of_requests(self) -> None:
        """Take a rate of each user for the pause between its requests; refuse what each request has several of.

        As in ``50 users, 10 requests an hour each``, and in ``20 queries/s, 50 passages each``.
        """
        for index, (count, meaning) in self._taken.items():
            keys = {at: key_of(token.text) for at, token in enumerate(self._tokens)}
            spans, every = vocabulary().durations, vocabulary().every["again"]
            one = [at for at in keys if self._is_apiece(at) and keys.get(at + 1) not in spans]
            behind = index + count + int(self._span(index + count, 1) == "for")
            is_of_one = not {behind, index - 1, index - 2}.isdisjoint(one)
            after = settings.amount_of(self._span(index + count + 1, 1))
            is_of_user = after is not None and after.field(INFER) == Key.INFERENCE_USERS
            is_of_user &= key_of(self._span(index + count, 1)) in _PER  # 20 requests a day per user
            is_per = key_of(self._span(index + count, 1)) == "per"
            is_of_one |= is_per and self._span(index + count + 1, 1) in vocabulary().asked_at_once
            is_loaded = not self._values.keys().isdisjoint({Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_USERS})
            rate, users = meaning.values.get(Key.INFERENCE_REQUEST_RATE), self._values.get(Key.INFERENCE_USERS)
            before = [key_of(word) for word in self._span(0, index).split()]
            pairs = ((word, vocabulary().amounts.get(noun)) for word, noun in pairwise(before))
            is_of_one |= any(word in every and noun and noun.field(INFER) == _LOADS[-1] for word, noun in pairs)
            if rate and users and (is_of_one or is_of_user or any(at < index for at in one)):
                self._values.pop(Key.INFERENCE_REQUEST_RATE)
                self._values[Key.INFERENCE_SECONDS_BETWEEN_REQUESTS] = pause = f"{1 / float(str(rate)):.4g}"
                why = f"each of {users} users sends a request every {pause} s"
                self._assumed.append(Assumption(Key.INFERENCE_SECONDS_BETWEEN_REQUESTS, pause, why))
            few = meaning.values.get(Key.INFERENCE_REQUESTS)
            is_ranked = any(part in self._text.casefold() for part in vocabulary().rankers)
            bound = "documents of a query" if is_ranked else "requests in all"
            is_few = isinstance(few, int) and few < vocabulary().bounds[bound]
            is_of_one |= is_few and not self._is_of_requests(index, count)
            is_part = {Key.INFERENCE_REQUESTS} <= meaning.values.keys() & self._values.keys() and is_of_one
            queries = self._values.get(Key.INFERENCE_REQUEST_RATE)
            if is_part and queries and is_ranked:
                rate = f"{float(str(queries)) * self._degree(Key.INFERENCE_REQUESTS):.4g}"
                self._values.pop(Key.INFERENCE_REQUESTS)
                why = f"{rate} documents a second: {queries} queries, {few} documents each"
                self._assume(Key.INFERENCE_REQUEST_RATE, rate, why)
            elif is_part and is_loaded:
                hint = "say how many come in a second in all, and the tokens of one"
                self._faults.append(PlanError("a request is one of them", self._span(index, count + 1), hint))

    def _requests_at_once(self) -> None:
        """Send requests whose number is known as many at once as engines take up, as ``10M documents`` are embedded."""
        if Key.INFERENCE_REQUESTS not in self._values or any(load in self._values for load in _LOADS):
            return
        pause = self._values.get(Key.INFERENCE_SECONDS_BETWEEN_REQUESTS)
        if pause is not None and self._values[Key.INFERENCE_REQUESTS] == 1:  # one request every 3 seconds
            self._values.pop(Key.INFERENCE_SECONDS_BETWEEN_REQUESTS)
            self._values.pop(Key.INFERENCE_REQUESTS)
            rate = f"{1 / float(str(pause)):.4g}"
            self._assume(Key.INFERENCE_REQUEST_RATE, rate, f"{rate} requests a second: one every {pause} s")
            return
        is_network = self._model is not None and self._model.kind == "network"
        if (is_network or self._asks_for_devices()) and self._rate_within():
            return
        if is_network:
            requests = int(str(self._values.pop(Key.INFERENCE_REQUESTS)))
            count = format_count(requests)
            why = f"all {count}: of a network a plan tells how many a second, and what a million costs"
            self._assumed.append(Assumption(Key.INFERENCE_REQUESTS, requests, why))
            return
        usual = int(vocabulary().usual[INFER]["sounds_at_once" if self._is_of_sound() else "requests_at_once"])
        most = usual * self._degree(Key.HARDWARE_DEVICES)
        batch = self._values.get(Key.INFERENCE_BATCH)
        if isinstance(batch, int):  # transcribe 300 minutes with batch 96
            self._values.pop(Key.INFERENCE_BATCH)
            most = batch
        at_once = min(most, self._degree(Key.INFERENCE_REQUESTS))
        why = f"{at_once} requests at once, until all are answered (or give 5 requests/s)"
        self._assume(Key.INFERENCE_CONCURRENCY, at_once, why)

    def _asks_for_devices(self) -> bool:
        """Whether a line asks how many devices, or which, so that nobody knows how many requests they take up."""
        questions = Questions(self._text, self._tokens, self._task, self._hardware_words()).all()
        is_asked = any(question.field in (Key.HARDWARE_DEVICES, Key.HARDWARE_NAME) for question in questions)
        return is_asked or Key.HARDWARE_NAME not in self._values

    def _rate_within(self) -> bool:
        """Send as many requests a second as answer all of them in the time that the line has for them.

        Money for all of them is so much an hour of that time.
        """
        limit = next((at for at, most in self._limits.items() if most.startswith(_IN_A_TIME)), None)
        if limit is None:
            return False
        requests, span = int(str(self._values.pop(Key.INFERENCE_REQUESTS))), self._limits.pop(limit)
        time = span.removeprefix(_IN_A_TIME)
        seconds = parse_quantity(time, "s")
        rate, why = f"{requests / seconds:.4g}", f"{format_count(requests)} within {time}"
        for at, most in [*self._limits.items()]:
            if most.startswith(_IN_ALL):
                dollars = most.removeprefix(_IN_ALL)
                an_hour = f"{float(dollars) * HOUR_SECONDS / seconds:.4g}"
                self._limits[at] = f"{Figure.COST_USD_PER_HOUR}<={an_hour}"
                why = f"{why}, ${dollars} are ${an_hour} an hour"
        self._assume(Key.INFERENCE_REQUEST_RATE, rate, f"{rate} requests a second: {why}")
        return True
