"""The words of a line that name model, hardware and task, the longest name first."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.similarity import amount_meant, is_common, is_near_filler
from capacity_tui.engine.plan.line.lexicon.task_words import TASK, is_of_serving, task_named
from capacity_tui.engine.plan.line.lexicon.tokens import Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, REFUSED, TRAIN, Meaning
from capacity_tui.engine.plan.line.questions import asks_for_nodes
from capacity_tui.engine.plan.line.recognition.counted_words import CountedWords
from capacity_tui.engine.plan.line.recognition.number_names import MOST_WORDS
from capacity_tui.engine.plan.line.recognition.taken_words import FULL
from capacity_tui.engine.plan.names import without_release

_JOINED = re.compile(r"[+&]")  # What joins names of hardware
_MOST_WORDS = 6  # Words that one name may have, as in ``llama 3.1 70b`` or ``H100 SXM``
_MOST_PIECES = 4  # Words that a part of a model's name may have, as ``nemotron 3 super 120b``
_BETWEEN = frozenset({"of", "is", "to", "="})  # Words between a name and its value, as in ``attention is flash``
_RELEASE_DATE = re.compile(r"0[1-9][0-3]\d|2[3-9](?:0[1-9]|1[0-2])")  # 0324, 2507
_SIZE_OF_A_NODE = re.compile(r"\d{1,2}[x×]?.*", re.IGNORECASE)  # nodes with 8xh100, nodes of 8
_CARD = re.compile(r"\d{3,4}[a-z]{0,2}", re.IGNORECASE)  # 920m, 9800gt
_SCRIPT, _MODULE = re.compile(r"[\w./~-]+\.(?:py|sh)"), re.compile(r"([a-z]+)(?:\.[a-z_]+)+")
_NODES, _MACHINES, _OF_A_SIZE = frozenset({"node", "nodes"}), frozenset({"boxes", "servers", "machines"}), 3
_HAVE_NONE = frozenset({Key.TRAINING_CHECKPOINTING, Key.PARALLELISM_OFFLOAD})


class NamedWords(CountedWords):
    """A line whose words are being recognized, and those of them that name model, hardware and task."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        super().__init__(text, catalog)
        self._mended: dict[str, str] = {}
        self._slips: dict[str, str] = {}  # words beside a number, by what they are read as
        self._tokens = [replace(token, text=without_release(token.text, catalog)) for token in self._tokens]
        self._tokens = [part for token in self._tokens for part in self._parts_of(token)]
        modules = ((at, _MODULE.fullmatch(token.text)) for at, token in enumerate(self._tokens))
        for at, module in modules:
            if module is not None and settings.is_exact_value(module[1], catalog):  # python -m vllm.entrypoints.openai
                self._tokens[at] = replace(self._tokens[at], text=module[1])
        self._mend_families()
        self._mend_amounts()

    def _parts_of(self, token: Token) -> list[Token]:
        """Return the names of hardware that a sign joins, as ``4090+3090``; other words as they are."""
        names = _JOINED.split(token.text)
        if len(names) == 1 or not all(hardware.named_hardware(name, self._catalog) for name in names):
            return [token]
        texts = [text for name in names for text in ("+", name)][1:]
        texts = [f"{len(names)}x{names[0]}"] if len({*names}) == 1 else texts
        return [replace(token, text=text, ends=token.ends and at + 1 == len(texts)) for at, text in enumerate(texts)]

    def _mend_families(self) -> None:
        """Read a slip in the name of a family of models before its version or size, as ``lama 3 8b``."""
        for index, token in enumerate(self._tokens):
            if self._span(index + 1, 1)[:1].isdigit() or key_of(self._span(index + 1, 1)) in vocabulary().nicknames:
                meant = models.family_meant(token.text, self._catalog)
                is_value = settings.named_value(token.text, INFER, "", self._catalog) is not None
                is_known = self._is_setting(token.text) or key_of(token.text) in vocabulary().refused
                if meant and not is_value and not is_known and task_named(token.text) is None:
                    self._mended[token.text] = meant
                    self._tokens[index] = Token(meant, token.start, token.end)

    def _mend_amounts(self) -> None:
        """Read a slip in a word beside a number, as ``16k contex`` or ``10k exmaples``."""
        for index, token in enumerate(self._tokens):
            is_adjacent = self._is_number_at(index - 1) or self._is_number_at(index + 1)
            meant = amount_meant(token.text) if is_adjacent and not self._is_setting(token.text) else None
            is_plain = is_near_filler(token.text) and meant not in vocabulary().fillers  # but 10 usres
            is_other = meant is None or is_plain or task_named(token.text) is not None
            names = (self._span(index - 1, few) for few in (3, 2) if index and not is_other)
            is_other |= any(self._thing(name, len(name.split())) for name in names)  # qwen2 audio 7b
            if meant is not None and not is_other and not self._thing(token.text, 1):
                if not meant.startswith(key_of(token.text)):  # but caption for captions
                    self._slips[meant] = token.text
                self._tokens[index] = Token(meant, token.start, token.end)

    # Names

    def _named(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize what names task, method, model or hardware, the longest name first."""
        token = self._tokens[index]
        ruled_out = self._joined(index) or self._ruled_out(index) or self._some_hardware(index)
        ruled_out = ruled_out or self._configured(token.text) or self._device_hours(index) or self._amount_asked(index)
        ruled_out = ruled_out or self._chassis(index) or self._aside(index) or self._beneath(index)
        ruled_out = ruled_out or self._release_date(index) or self._unknown_card(index)
        if ruled_out is not None:
            return ruled_out
        is_question = index > 0 and key_of(self._span(index - 1, 2)) in vocabulary().queries  # how large
        is_number = settings.is_number(token.text) and self._is_counted(index)
        ends = self._is_in_phrase(index) or (self._is_of_name(index) and self._is_one_device(index + 1))
        is_number |= self._is_in_count(index) or self._is_version(index) or (ends and not self._counts_devices(index))
        is_mark = not any(map(str.isalnum, token.text))
        if is_question or is_number or is_mark or ("=" in token.text and "(" not in token.text):
            return None
        user_defined = hardware.named_hardware(token.text, self._catalog) if "(" in token.text else None
        if user_defined is not None:
            return 1, user_defined
        for count in range(min(_MOST_WORDS, len(self._tokens) - index), 0, -1):
            if not self._is_free(index, count) or any(token.ends for token in self._tokens[index : index + count - 1]):
                continue
            phrase = self._span(index, count)
            if count > 1 and models.is_size(token.text) and settings.is_number(self._tokens[index + 1].text):
                continue  # 70b 200 users are no 70 B200
            is_amount = key_of(phrase) in vocabulary().here and settings.amount_of(self._span(index, 2)) is not None
            if self._is_phrase(phrase) or is_amount:  # local batch 2
                return None
            is_whole = count == 1 and self._is_whole(index)
            hint = self._refusal(phrase) if count > 1 else None  # stable diffusion 3.5
            refused = None if hint is None else Meaning(fault=PlanError(f"{phrase!r} {REFUSED}", hint=hint))
            meaning = Meaning() if is_whole else refused or task_named(phrase) or self._thing(phrase, count)
            meaning = meaning or self._nodes_of(index, count)
            if meaning is not None and models.MODEL in meaning.values and self._ends_counted(index, count):
                continue
            if meaning is not None:
                is_guess = key_of(phrase) == FULL and meaning.values and not self._is_trained_elsewhere(index)
                why = f"{phrase}: full fine-tuning (or say serve)" if is_guess else meaning.why
                return count, replace(meaning, why=why)
        return self._size_first(index)

    def _unknown_card(self, index: int) -> tuple[int, Meaning] | None:
        """Refuse a card of a known line that no catalogue has, with its memory, as ``geforce 920m 2gb``."""
        name, number = self._span(index, 2), self._span(index + 1, 1)
        is_card = key_of(self._span(index, 1)) in vocabulary().card_lines and _CARD.fullmatch(number) is not None
        spans = (self._span(at, few) for at in (index, index + 1) for few in (1, 2, 3))
        if (
            not is_card
            or self._is_counted(index + 1)
            or any(hardware.named_hardware(span, self._catalog) for span in spans)
        ):
            return None
        hint = "name a card like it, or its figures, as gpu(2GiB,0.4TFLOPs,14GB/s)"
        figure = hardware.figures_of(self._span(index + 2, 1)) or {}
        return 2 + int(hardware.MEMORY in figure), Meaning(fault=PlanError("no such card is known", name, hint))

    def _is_one_device(self, index: int) -> bool:
        """Whether a word names a device alone, and not several: ``h100``, but neither ``h100s`` nor ``8xh100``."""
        named = hardware.named_hardware(self._word(index), self._catalog)
        return named is not None and hardware.DEVICES not in named.values and not self._word(index).endswith("s")

    def _counts_devices(self, index: int) -> bool:
        """Whether a number counts devices, whatever it could end: ``llama 3 h100 gpus``, ``fsdp 2 3090``."""
        named, behind = hardware.named_hardware(self._word(index + 1), self._catalog), self._word(index + 2)
        amount, phrase = settings.amount_of(key_of(behind)), vocabulary().phrase(self._span(index - 1, 2), TRAIN) or {}
        several = self._word(index + 1).endswith("s") or (amount is not None and amount.name == "devices")
        shards = Key.TRAINING_FRAMEWORK in phrase and not re.match("[x×*]", behind)  # over several
        return self._is_number_at(index) and named is not None and (several or shards)

    def _is_in_phrase(self, index: int) -> bool:
        """Whether a word is one behind the first of some that set a field: ``all linear layers``."""
        spans = ((back, few) for back in (1, 2) for few in (2, 3) if back < few and back <= index)
        places = ((index - back, few) for back, few in spans)
        return any(self._is_free(at, few) and self._is_phrase(self._span(at, few)) for at, few in places)

    def _ends_counted(self, index: int, count: int) -> bool:
        """Whether the last of some words is a number of what stands behind them, as in ``llama 70b 3 replicas``."""
        last = index + count - 1
        beta = settings.amount_of(self._span(last, 1)) if count > 1 else None
        if beta is not None and self._is_number_at(last + 1) and not settings.at_least(self._word(last + 1), 1):
            return True  # zephyr 7b beta 0.1
        is_number = 1 < count <= len(self._tokens) - index and self._tokens[last].text.isdecimal()
        behind = next(self._names_behind(last), None) if is_number else None
        return behind is not None and behind.amount.is_behind

    def _is_whole(self, index: int) -> bool:
        """Whether a method of training says that another thing is whole: ``full 128k context``, ``full fp8``.

        So it does beside words of serving, and before a mixture: ``deepseek-r1 full version``, ``full kimi-k2 8xh200``.
        """
        if key_of(self._tokens[index].text) != FULL:
            return False
        keys = {key_of(token.text) for token in self._tokens}
        tasks = {meaning.values.get(TASK) for token in self._tokens if (meaning := task_named(token.text)) is not None}
        is_served = INFER in {*tasks, *map(vocabulary().suggests.get, keys)}
        is_served |= any(is_of_serving(token.text, self._catalog) for token in self._tokens)
        if self._tokens[index].ends:
            return is_served and not self._is_trained_elsewhere(index)
        counted = self._count_of(index + 1) if self._is_number_at(index + 1) else None
        is_length = counted is not None and counted.name.casefold().startswith(("context", "ctx", "prompt", "window"))
        after = self._span(index + 1, 1)
        is_length |= counted is None and settings.is_number(after) and after[-1] in "kK"  # full 128k
        named = settings.amount_of(after)
        is_length |= named is not None and named.name in (settings.SEQUENCE, "epochs")  # a full context of 8k
        behind = [self._span(index + 1, words) for words in range(1, _MOST_PIECES + 1)]
        if self._is_value(behind[0]) and TRAIN in tasks:
            return True  # pretrain in full fp32
        is_model = self._is_value(behind[0]) or key_of(behind[0]) in vocabulary().model_words
        is_model |= any(key_of(word) in vocabulary().nicknames for name in behind for word in name.split())
        meanings = filter(None, (models.named_model(name, self._catalog) for name in behind))
        rows = [self._catalog.architectures.get(str(meaning.values[models.MODEL])) for meaning in meanings]
        is_model |= any(row is None or row.experts for row in rows)
        is_called = bool(rows) or (counted is None and any(map(self._model_called, behind)))
        is_called |= not self._is_counted(index + 2) and self._model_called(self._span(index + 2, 1)) is not None
        has_other = {vocabulary().methods.get(key, FULL) for key in keys} != {FULL}
        has_other &= vocabulary().comparing.isdisjoint(keys)  # but lora or full llama 8b
        is_sized = is_called and (has_other or INFER in tasks)  # qlora of the full 70b, but full 7b 4xa100
        return is_length or is_sized or ((is_model or is_served) and not self._is_trained_elsewhere(index))

    def _configured(self, text: str) -> tuple[int, Meaning] | None:
        """Recognize what a word is set to: ``model.config=config.json``, and the name in ``gpu = 4090``.

        A script is what its name says, as ``run_sft.py``, or nothing.
        """
        if _SCRIPT.fullmatch(text):
            tasks = [named for part in re.split(r"[\W_]", text) if (named := task_named(part)) is not None]
            named = max(tasks, key=lambda meaning: len(meaning.values), default=Meaning())
            return 1, replace(named, why=f"{text}: {named.words}" if named.words else "")
        key, _, path = text.partition("=")
        if key == Key.MODEL_CONFIG and path:
            return 1, Meaning(f"model {path}", {models.MODEL: path})
        named = self._thing(path, 1) if path and key_of(key) in vocabulary().fillers else None
        return None if named is None else (1, named)

    def _ruled_out(self, index: int) -> tuple[int, Meaning] | None:
        """Return what is set by a word that another one rules out, as in ``no offload``."""
        words, task = vocabulary(), TRAIN if self._task == FINETUNE else self._task
        ruled = (few for few in (3, 2, 1) if key_of(self._span(index, few)) in words.negations)
        last = len(self._tokens) - 1
        before = next((few for few in ruled if index + few <= last and not self._is_apart(index + few - 1)), 0)
        for count in (3, 2, 1):  # no flash attention; flash attention off
            others = before or 1
            key, is_free = key_of(self._span(index + before, count)), self._is_free(index, count + others)
            is_off = bool(before) or self._is_switched_off(index + count)
            values = words.ruled_out.get(task or "any", {}).get(key) if is_free and is_off else None
            phrase = words.phrase(key, task or "") or {}
            if values is None and is_free and is_off and phrase and _HAVE_NONE.issuperset(phrase):
                values = dict.fromkeys(phrase, "none")
            if values is None and is_free and is_off and not before and self._is_value(self._span(index, count)):
                values = {}  # fp16=False
            if values is not None:
                return count + others, Meaning(self._span(index, count + others) if values else "", values)
        return None

    def _some_hardware(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a number of devices with words of their kind between, as ``2 used 3090s``."""
        words, number = vocabulary(), self._tokens[index].text
        first = at = index + 1
        while at < len(self._tokens) and key_of(self._tokens[at].text) in words.adjectives:
            at += 1
        number = number.rstrip("xX×")
        if at == first or not number.isdigit() or self._is_counted(index):
            return None
        for count in range(min(_MOST_WORDS, len(self._tokens) - at), 0, -1):
            match = hardware.named_hardware(f"{number}x{self._span(at, count)}", self._catalog)
            if match is not None and match.fault is None and hardware.NAME in match.values:
                phrases = [words.phrase(self._tokens[place].text, TRAIN) or {} for place in range(first, at)]
                values = {**match.values, **{path: value for some in phrases for path, value in some.items()}}
                return at + count - index, replace(match, values=values)
        return None

    def _nodes_of(self, index: int, count: int) -> Meaning | None:
        """Return the machines that some words count, as ``4 dgx a100`` or ``dgx h100``: each has several devices."""
        words = [token.text for token in self._tokens[index : index + count]]
        words[1:2] = [word for word in words[1:2] if word not in ("x", "×", "*")]  # 2 x dgx h100
        if key_of(words[-1]) in vocabulary().racks:
            return self._racks(" ".join(words[:-1]), words[-1])
        if key_of(words[-1]) in _NODES | _MACHINES and count > 1:
            size_at = index + count + 1
            has_size = _SIZE_OF_A_NODE.fullmatch(self._span(size_at, 1)) and not self._is_counted(size_at)
            return self._counted_nodes(words, self._span(index + count, 1) if has_size else "")
        is_size = words[-1].isdecimal() and next(self._names_behind(index + count - 1), None) is None  # with 30 users
        if count > _OF_A_SIZE and is_size and key_of(words[-2]) in vocabulary().every["holding"]:  # 2 mi300x nodes of 8
            return self._counted_nodes(words[:-2], "", int(words[-1])) if key_of(words[-3]) in _NODES else None
        size = vocabulary().nodes.get(key_of(words[0].lstrip("0123456789xX×*"))) or (
            vocabulary().nodes.get(key_of(words[1])) if count > 2 else None
        )
        number = re.match(r"\d+", words[0])
        size = size if number or key_of(words[0]) in vocabulary().nodes else None
        name = " ".join(words[1:] if key_of(words[0].lstrip("0123456789xX×*")) in vocabulary().nodes else words[2:])
        match = hardware.named_hardware(name, self._catalog) if size and name else None
        if size is None or match is None or match.fault or hardware.DEVICES in match.values:
            return None
        nodes = int(number[0]) if number else 1
        counted: dict[str, object] = {hardware.DEVICES: nodes * size, Key.HARDWARE_PER_NODE: size}
        return Meaning(f"{nodes} x {size} {match.words}", {**match.values, **counted})

    def _counted_nodes(self, words: list[str], after: str, size: int = 0) -> Meaning | None:
        """Return the nodes that some words count, as ``2 h100 nodes``: of a size, or of the usual one where none is."""
        first, name = words[0].rstrip("xX×"), " ".join(words[:-1])
        is_counted = first.isdecimal() and len(words) > 2
        match = hardware.named_hardware(" ".join(words[1:-1]) if is_counted else name, self._catalog)
        whole = hardware.named_hardware(name, self._catalog)  # 8x a100 x 16 nodes
        if whole is not None and Key.HARDWARE_PER_NODE in whole.values:
            return whole
        if is_counted and match is not None and isinstance(few := match.values.get(hardware.DEVICES), int):
            of_nodes: dict[str, object] = {
                hardware.DEVICES: int(first) * few,
                Key.HARDWARE_PER_NODE: few,
            }  # 3 8xh100 nodes
            return Meaning(f"{first} x {match.words}", {**match.values, **of_nodes})
        row = None if match is None else self._catalog.accelerators.get(str(match.values.get(hardware.NAME)))
        fabric = None if row is None else self._catalog.fabric_of(row)
        nodes = int(first) if is_counted else 1
        is_other = key_of(words[-1]) == "node" and nodes > 1  # 8 h100 node
        is_other |= key_of(after) in vocabulary().every["holding"] or self._has_apiece()
        is_other |= key_of(words[-1]) not in _NODES and row is not None and "PCIe" in (row.form_factor or "")
        is_other &= not size  # of machines with cards nobody knows how many these have
        if match is None or fabric is None or hardware.DEVICES in match.values or is_other or not nodes:
            return None
        why = "" if size else f"{fabric.node_devices} devices a node, as {fabric.name} have"
        size = size or fabric.node_devices
        if size == 1 or asks_for_nodes(self._tokens):
            return None
        counted: dict[str, object] = {hardware.DEVICES: nodes * size, Key.HARDWARE_PER_NODE: size}
        return Meaning(f"{nodes} x {size} {match.words}", {**match.values, **counted}, why)

    def _thing(self, phrase: str, count: int) -> Meaning | None:
        """Return model or hardware of a name; of several words only names without additions."""
        if count > 1 and any(mark in phrase for mark in "=("):
            return None
        is_plain = count == 1 and key_of(phrase) in vocabulary().fillers
        if is_plain or (count == 1 and self._is_value(phrase)) or (count > 1 and phrase[:2].casefold() == "a "):
            return None  # a 10 person team
        match = hardware.named_hardware(phrase, self._catalog) if not settings.is_number(phrase) or count == 1 else None
        is_other = count > 1 and self._is_value(phrase.rpartition(" ")[2])  # a 4090 fp16
        if match is not None and not is_other and not (settings.is_number(phrase) and len(phrase) < 4):
            return match
        if count > 1 and self._catalog.architectures.is_variant(phrase.replace(":", "-")):
            return None
        return models.named_model(phrase, self._catalog)

    def _sized(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a size, or a part of a model's name, where no model was named in full."""
        text = self._tokens[index].text
        is_number = settings.is_number(text)
        is_named = models.MODEL in self._values and not self._is_given_up(index)
        if is_named or not self._is_free(index) or (is_number and self._is_counted(index)):
            return self._named_once_more(index) if is_named else None
        others = vocabulary().fillers | vocabulary().dates  # dec is no decision tree
        is_other = self._is_setting(text) or is_common(text) or self._is_phrase(self._span(index, 2))
        is_other |= self._is_in_phrase(index)
        if "=" in text or key_of(text) in others or is_other:
            return None  # the transformer engine is no model
        after = self._tokens[index + 1].text if self._is_free(index + 1) else ""
        for count in range(_MOST_PIECES, 1, -1) if not is_number else ():
            pieces = self._tokens[index : index + count]
            is_name = self._is_free(index, count) and not any(piece.ends for piece in pieces[:-1])
            variants = self._catalog.architectures.variants
            is_other = any(self._is_setting(piece.text) for piece in pieces[1:])
            is_other |= any(key_of(piece.text) in variants for piece in pieces)  # awq qwen 32b
            is_other |= self._ends_counted(index, count)
            if is_name and not is_other:
                match = models.resembling_model("-".join(piece.text for piece in pieces), self._catalog)
                if match is not None:
                    return count, match
        is_before = text[-1:] in "mM" and self._is_free(index + 1) and self._is_model_word(self._span(index + 2, 1))
        is_of_millions = text[-1:] in "mM" and self._has_tokens()  # pretrain 350M on 10B tokens
        is_of_model = is_of_millions or self._is_model_word(after) or is_before
        is_other_number = is_number and text[-1:] not in "bB" and not is_of_model
        # A family has no model of a size that nothing is called by.
        is_other_size = not models.is_size(text) and models.is_size(after) and not self._is_counted(index + 1)
        is_other_size = is_other_size and not models.is_family(text)
        nickname = vocabulary().nicknames.get(key_of(text))  # but nvlink v3 beside llama 70b
        names = {token.text.casefold() for token in self._tokens} & models.families_of_models(self._catalog)
        is_of_another = nickname is not None and any(name not in nickname for name in names)
        if is_other_number or is_other_size or is_of_another:
            return None
        match = models.sized_model(text, self._catalog) or models.resembling_model(text, self._catalog)
        return (1, match) if match is not None else None

    def _field_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a field by one word or some, with the name of its value behind it; a switch stands alone."""
        for words in range(MOST_WORDS, 0, -1):
            if not self._is_free(index, words):
                continue
            name = self._span(index, words)
            skipped = int(self._is_free(index + words) and key_of(self._tokens[index + words].text) in _BETWEEN)
            behind = index + words + skipped
            meaning = self._value_of_field(name, self._tokens[behind].text) if self._is_free(behind) else None
            if meaning is not None:
                return words + skipped + 1, meaning
            field = settings.named_field(name, self._task, self._model)
            if field is not None and field[1].kind == "switch" and not settings.is_exact_value(name, self._catalog):
                return words, Meaning(name, {field[0]: True})
        return None

    def _release_date(self, index: int) -> tuple[int, Meaning] | None:
        """Pass over the year and month, or the month and day, that a model is of, as in ``qwen3 30b-a3b 2507``."""
        before = self._span(index - 1, 1) if index else ""
        is_date = _RELEASE_DATE.fullmatch(self._tokens[index].text) is not None and not self._is_counted(index)
        is_model = models.is_size(before.split("-")[0]) or self._model_called(before) is not None
        return (1, Meaning()) if is_date and is_model else None

    def _has_tokens(self) -> bool:
        """Whether words say of a number that it is the tokens of a job, or what data there is."""
        pairs = pairwise(key_of(token.text) for token in self._tokens)
        if any(key in vocabulary().datasets or (key == "of" and noun in vocabulary().stored) for key, noun in pairs):
            return True
        counts = (self._count_of(at) for at in range(len(self._tokens)) if self._is_number_at(at))
        return any(count is not None and count.amount.name == settings.TOKENS for count in counts)
