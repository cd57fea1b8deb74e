"""Commands in scripts of other tools as documents of options with their lines; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import pairwise

from capacity_tui.engine.catalog import Document, KeyPath, Plain, format_in_name
from capacity_tui.engine.errors import DocumentError, Place
from capacity_tui.engine.plan.imports.scripts.expressions import FurtherOptions
from capacity_tui.engine.plan.imports.scripts.shell import Script
from capacity_tui.engine.plan.imports.scripts.shell_words import Word, split_words
from capacity_tui.engine.plan.imports.scripts.starting import (
    OPTION,
    PYTHON,
    SCRIPT,
    TAKES_MODEL,
    started_programs,
    tool_called,
)
from capacity_tui.engine.plan.options.tools import Tool, tools
from capacity_tui.engine.record import dataclass

LAUNCHER = "launcher"

INPUT = "-"  # What a program runs in place of a file: the text behind it

_STARTERS = (
    *("python3?", "torchrun", "accelerate", "deepspeed", "trl", "srun", "mpirun", "sbatch"),
    *("uv", "docker", "exec", "nohup", "bash", "set", "CUDA_VISIBLE_DEVICES"),
)
"""Programs beside those of tools with which a command begins, as patterns."""

_NUMBER = re.compile(r"-\d+(\.\d+)?")

_LETTER = re.compile(r"-[A-Za-z]")  # An option of one letter, which any program may have

_OVERRIDE = re.compile(r"[+~]{0,2}([a-z]\w*(?:[./]\w+)*)=(.*)", re.DOTALL)
"""An option as Hydra and OmegaConf take it: ``trainer.nnodes=2``."""

_CONTINUED = re.compile(r"[+~]{0,2}[a-z]\w*(?:\.\w+)+=")
"""The same where a comment between options ends a command: the shell has it for a program that is not there."""

_MAY_BE_OPTIONS = re.compile(r"\$(?!\{?SLURM_)[^/]*")  # What only the shell knows, other than a path or a node

_CONFIGURATION = re.compile(r".+\.(?:ya?ml|json|toml)|.+\.py \S+\.py")
"""A file of options alone behind a program, which may be one of Python behind a script."""

_FURTHER = re.compile(r"\$\{?(?:[@*].*|\w+\[[@*]\]\}|\w*(?:args?|opts?|options|flags?|params|extra)\}?)", re.IGNORECASE)
"""A variable that holds options, none of which is known: the arguments of a script, an array, ``$EXTRA_ARGS``."""

_AND_SO_ON = "..."  # What documentation writes for options of one's own

_PRINTS = frozenset({"echo", "printf", "cat", "tee", "make", "pip"})
"""Programs that show a command, or build and install it, rather than run it."""

_ASKS = frozenset({"--version", "--help"})
"""Options with which a program only says something of itself."""

_IN_FOLDER = re.compile(r"\$(?:\{?\w+\}?|\([^()]+\))/((?:[\w.-]+/)*[\w.-]+)")
"""In one that a variable names, or a program: ``$(pwd)/qwen3-8b``."""

_OF_HUB = re.compile(r"[\w.-]+/[\w.-]+")  # A model by its name on the hub

_SIZED = re.compile(r"\d[bB]\b|\.gguf$")
"""What tells that a file or folder is a model; so does a format behind its name."""

_RUN_BY_PYTHON = re.compile(r"#!.*\bpython")

_OF_PYTHON = frozenset({"-m", "-u", "-O", "-OO", "-B", "-E", "-I", "-s"})  # Options of Python before what it runs


def is_command(text: str) -> bool:
    """Whether a text is a shell script, a command or options of one."""
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("# ")), "")
    return _command_start().match(first) is not None and _RUN_BY_PYTHON.match(first) is None


@cache
def _command_start() -> re.Pattern[str]:
    """Return what a script or a command begins with: a mark, an option, a variable, or a program."""
    programs = {re.escape(name.split()[0]) for tool in tools().values() for name in tool.programs}
    names = "|".join((*sorted(programs), *_STARTERS))
    start = rf"^\s*(?:#!|--?[A-Za-z]|(?:export\s+)?[A-Za-z_]\w*=|(?:\S*/)?(?:{names})\s+[^:=\s])"
    return re.compile(start, re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Command:
    """A command that starts a tool, or may start one."""

    document: Document  # its options
    owner: Tool | None = None  # the tool whose program it starts; None where only options tell it
    program: str = ""  # the words before its options
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)  # the variables that it sees

    @property
    def started(self) -> str:
        """The words that say what runs: the program, and the configuration that it is told by name."""
        data = self.document.data if isinstance(self.document.data, dict) else {}
        named, made = data.get("--config"), data.get("--factory")
        if isinstance(made, str):  # nemo llm pretrain --factory "llama3_8b(num_nodes=2)"
            named = f"{made.partition('(')[0]}.{self.program.rpartition(' ')[2]}_recipe"
        return f"{self.program} {named}" if isinstance(named, str) else self.program

    @property
    def script(self) -> str:
        """The Python script that runs, as a path; empty where none is named."""
        words = self.program.split()
        named = next((word for word in words if SCRIPT.fullmatch(word) or word == INPUT), "")
        module = next((after for word, after in pairwise(words) if word == "-m"), "")
        return named or (f"{module.replace('.', '/')}.py" if module else "")

    def options_of(self, owner: Tool) -> Document:
        """Return its options as those of a server whose image starts it: a name before them is that of the model."""
        data = self.document.data if isinstance(self.document.data, dict) else {}
        is_alone = self.owner is None and _OF_HUB.fullmatch(self.program) is not None and not self.names_script
        if not (is_alone and owner.starts_with_model) or any(owner.names_model(key) for key in data):
            return self.document
        lines = {**self.document.lines, ("model",): min(self.document.lines.values(), default=1)}
        return replace(self.document, data={"model": self.program, **data}, lines=lines)

    @property
    def names_script(self) -> bool:
        """Whether a file of Python runs, whose name is all that tells whose it is; a module is named in full."""
        return any(SCRIPT.fullmatch(word) for word in self.program.split())

    def serves(self, owner: Tool) -> bool:
        """Whether the program of a tool generates or evaluates rather than trains; folders say nothing of that."""
        names = " ".join(word.rpartition("/")[2] for word in self.program.split())
        return any(re.search(rf"(?<![A-Za-z]){word}", names) for word in owner.serves)


def tool_commands(script: Script, name: str) -> Iterator[Command]:
    """Yield the commands of a script that may start tools; raises DocumentError where a quote is not closed."""
    if script.open_quote is not None:
        raise DocumentError("a quote is not closed", place=Place(name, script.open_quote))
    alone: list[Word] = []
    for words in _continued(script.commands):
        if _is_inline_python(words) or words[0].text in _PRINTS or words[-1].text in _ASKS:
            continue
        if OPTION.match(words[0].text):
            alone += words
            continue
        launcher, program = started_programs(words)
        if launcher:
            yield Command(_options(launcher, name), tools()[LAUNCHER])
        if program:
            first = [word.text for word in _before_options(program)]
            owner = tool_called(" ".join(first))
            called = " ".join((*first, *_recipe(program[len(first) :], owner)))
            yield Command(_options(program, name), owner, called, script.environments.get(words[0].line, {}))
    if alone:
        yield Command(_options(alone, name))


def _recipe(words: Sequence[Word], owner: Tool | None) -> Iterator[str]:
    """Yield what a tool runs that stands alone behind options: ``tune run --nproc_per_node 4 full_finetune``."""
    for before, word in pairwise(words):
        if owner is not None and not OPTION.match(before.text) and any(owner.started_values(word.text)):
            yield word.text


def _continued(commands: Sequence[tuple[Word, ...]]) -> Iterator[tuple[Word, ...]]:
    """Yield commands, each with the overrides that a comment between them cuts off."""
    gathered: tuple[Word, ...] = ()
    for words in commands:
        if gathered and not _CONTINUED.match(words[0].text):
            yield gathered
            gathered = ()
        gathered += words
    if gathered:
        yield gathered


def options_kept(script: Script, name: str) -> Command:
    """Return the options that variables of a script hold, for scripts that others read in."""
    kept = (word for values in script.variables.values() for word in values if not word.text.startswith(("$(", "`")))
    words: list[Word] = []
    is_letter = False
    for part in (part for word in kept for part in split_words(word)):
        is_letter = _LETTER.fullmatch(part.text) is not None or (is_letter and not OPTION.match(part.text))
        words += [] if is_letter else [part]  # Options of one letter, which any program may have, and their values
    return Command(_options(words if words and OPTION.match(words[0].text) else [Word("", 0), *words], name))


def _is_inline_python(words: Sequence[Word]) -> bool:
    """Whether a command runs a program that stands in its own arguments: ``python -c "..."``."""
    texts = [word.text for word in words]
    return any(PYTHON.fullmatch(text) and after == "-c" for text, after in pairwise(texts))


def _before_options(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words of a command before its first option; ``-m`` names a module."""
    python = bool(words) and words[0].text.rpartition("/")[2].startswith("python")
    for word in words:
        if _OVERRIDE.fullmatch(word.text) or (OPTION.match(word.text) and not (python and word.text in _OF_PYTHON)):
            return
        yield word


def _options(words: Sequence[Word], name: str) -> Document:
    """Return the options of a command; what stands alone behind the program is its ``model`` or its ``config``."""
    data: dict[str, Plain] = {}
    lines: dict[KeyPath, int] = {}
    given = list(_before_options(words))
    rest = [word for word in words[len(given) :] if word.text != _AND_SO_ON]
    while len(given) > 1 and _FURTHER.fullmatch(given[-1].text):
        rest.insert(0, given.pop())
    model = given[-1] if len(given) > 1 and TAKES_MODEL.fullmatch(given[-2].text) else None
    if given and TAKES_MODEL.fullmatch(given[-1].text):
        model = _model_at_the_end(rest, tool_called(" ".join(word.text for word in given)))
    owner = tool_called(" ".join(word.text for word in given[:-1]))
    option = owner.argument if owner is not None else ""
    if model is not None:
        data["model"], lines["model",] = _plain(model), model.line
    elif option or (given and _CONFIGURATION.fullmatch(" ".join(word.text for word in given[-2:]))):
        option = option or "config"
        data[option], lines[option,] = given[-1].text, given[-1].line
    further: list[Word] = []
    while rest:
        word = rest.pop(0)
        if override := _OVERRIDE.fullmatch(word.text):
            data[override[1]], lines[override[1],] = _plain(replace(word, text=override[2])), word.line
        elif OPTION.match(word.text):
            key, equals, text = word.text.partition("=")
            values = [Word(text, word.line)] if equals else list(_values_behind(rest, further))
            lines[key,] = word.line
            several = [_plain(part) for part in values] or True
            data[key] = (_plain(values[0]) or values[0].text) if len(values) == 1 else several
        elif word.is_open:
            further.append(word)
    for word in (one for one in further if _MAY_BE_OPTIONS.fullmatch(one.text)):
        data[word.text], lines[word.text,] = FurtherOptions(word.text), word.line
    return Document(data, name, lines)


def _model_at_the_end(rest: list[Word], owner: Tool | None) -> Word | None:
    """Take the model that stands alone behind all options: ``trtllm-serve --tp_size 8 --config a.yaml models/r1``.

    Or behind one that has its value: ``vllm serve --uvicorn-log-level=info Qwen/Qwen3-8B --port 8000``.
    """
    if owner is None or any(owner.names_model(word.text.partition("=")[0]) for word in rest):
        return None
    whole = {at for at, word in enumerate(rest) if OPTION.match(word.text) and "=" in word.text}
    alone = (at + 1 for at in whole if rest[at + 1 :] and not OPTION.match(rest[at + 1].text))
    if (first := min(alone, default=None)) is not None:
        return rest.pop(first)
    last = [word.text for word in rest[-3:]]
    is_alone = len(last) > 2 and OPTION.match(last[0]) is not None and "=" not in last[0]
    return (
        rest.pop()
        if is_alone and "/" in last[2] and "=" not in last[2] and not any(map(OPTION.match, last[1:]))
        else None
    )


def _values_behind(rest: list[Word], further: list[Word]) -> Iterator[Word]:
    """Take the values of an option from the words behind it, and words that stand for further options beside them."""
    before: Word | None = None
    while rest and (not rest[0].text.startswith("-") or _NUMBER.fullmatch(rest[0].text)):
        if before is not None and (_OVERRIDE.fullmatch(rest[0].text) or _ends_numbers(before, rest[0])):
            return
        value = rest.pop(0)
        # Behind a value, what only the shell knows is options as a rule.
        if _FURTHER.fullmatch(value.text) or (before is not None and value.is_open):
            further.append(value)
        else:
            before = value
            yield value


def _ends_numbers(before: Word, word: Word) -> bool:
    """Whether a word behind a number is no value of its option: ``tune run --nproc_per_node 4 full_finetune``."""
    return before.text.isdigit() and not word.is_open and re.fullmatch(r"[\d.,]+", word.text) is None


def _plain(word: Word) -> Plain:
    """Return a word, of a model in a folder that only the shell knows the rest; None for what only that knows."""
    named = _IN_FOLDER.fullmatch(word.text)
    if named is not None:
        last = named[1].rpartition("/")[2]
        is_model = _SIZED.search(named[1]) or ("-" in last and format_in_name(last) is not None)
        return named[1] if is_model else None
    return None if word.is_open else word.text
