"""Commands in scripts of other tools as documents of options with their lines; nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from capacity_tui.engine.catalog import Document, KeyPath, Plain, parse_shipped
from capacity_tui.engine.errors import DocumentError, Place
from capacity_tui.engine.plan.imports.scripts.expressions import FurtherOptions
from capacity_tui.engine.plan.imports.scripts.shell import Script
from capacity_tui.engine.plan.imports.scripts.shell_words import Word, split_words
from capacity_tui.engine.plan.imports.tools import Tool, tools
from capacity_tui.engine.record import dataclass


@cache
def words_of_manifests() -> Mapping[str, Any]:
    """Return what files say that run programs on machines: ``profiles/manifests.yaml``."""
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "manifests.yaml")
    return rows


def program_of_image(image: str, variables: Iterable[tuple[str, str]] = ()) -> str:
    """Return the program that an image of a name starts; empty for one that is not known.

    Args:
        variables: of the container: an image of one model has its options in them.
    """
    programs: Mapping[str, str] = words_of_manifests()["images"]
    part, program = next(((part, program) for part, program in programs.items() if part in image), ("", ""))
    if program in words_of_manifests()["options_in_variables"]:
        return shlex.join([program, *_options_in(variables, program)])
    if program not in words_of_manifests()["one_model"]:
        return program
    model = image.partition(part)[2].partition(":")[0].partition("@")[0]
    options = (f"--{name}={value}" for name, value in variables if name.startswith(f"{program.upper()}_"))
    return shlex.join([program, f"--model={model}", *options])


def _options_in(variables: Iterable[tuple[str, str]], program: str) -> Iterator[str]:
    """Yield the options of a program that variables of its container give."""
    before: str = words_of_manifests()["options_in_variables"][program]
    owner = _tool(program)
    for name, value in variables:
        option = name.removeprefix(before).casefold()
        if name.startswith(before) and (before or (owner is not None and owner.knows_option((option,)))):
            yield f"--{option}={value}"


LAUNCHER = "launcher"

_STARTERS = (
    *("python3?", "torchrun", "accelerate", "deepspeed", "trl", "srun", "mpirun", "sbatch"),
    *("uv", "docker", "exec", "nohup", "bash", "CUDA_VISIBLE_DEVICES"),
)
"""Programs beside those of tools with which a command begins, as patterns."""

_NUMBER = re.compile(r"-\d+(\.\d+)?")

_OPTION = re.compile(r"--?[A-Za-z_]")

_LETTER = re.compile(r"-[A-Za-z]")  # An option of one letter, which any program may have

_OVERRIDE = re.compile(r"[+~]{0,2}([a-z]\w*(?:[./]\w+)*)=(.*)", re.DOTALL)
"""An option as Hydra and OmegaConf take it: ``trainer.nnodes=2``."""

_CONTINUED = re.compile(r"[+~]{0,2}[a-z]\w*(?:\.\w+)+=")
"""The same where a comment between options ends a command: the shell has it for a program that is not there."""

_MAY_BE_OPTIONS = re.compile(r"\$(?!\{?SLURM_)[^/]*")  # What only the shell knows, other than a path or a node

_CONFIGURATION = re.compile(r".+\.(?:ya?ml|json|toml)")  # A file of options, alone behind a program

_TAKES_MODEL = re.compile(r"serve|launch_server|run|trtllm-serve|api_server|pretrain|finetune(?:_\w+)?")
"""What a model without an option stands behind: ``vllm serve MODEL``, ``litgpt finetune_lora MODEL``."""

_FURTHER = re.compile(r"\$\{?(?:[@*].*|\w+\[[@*]\]\}|\w*(?:args?|opts?|options|flags?|params|extra)\}?)", re.IGNORECASE)
"""A variable that holds options, none of which is known: the arguments of a script, an array, ``$EXTRA_ARGS``."""

_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "apptainer", "singularity"})
"""Programs that run another one in an image."""

_RUNS_IN_IMAGE = frozenset({"run", "exec", "create"})  # The commands of those that do

_PRINTS = frozenset({"echo", "printf", "cat", "tee", "make", "pip"})
"""Programs that show a command, or build and install it, rather than run it."""

_ASKS = frozenset({"--version", "--help"})
"""Options with which a program only says something of itself."""

_BEFORE = frozenset({"exec", "sudo", "nohup", "time", "uvx"})
"""Words before a command that change nothing of it."""

_ENVIRONMENTS = frozenset({"conda", "mamba", "micromamba", "poetry", "pixi", "uv"})
"""Programs that run another one in an environment, behind ``run`` and options of their own."""

_NAMED = frozenset({"-n", "--name", "-p", "--prefix", "--with", "--extra", "--group", "--project", "--directory"})
"""Options of those whose values are no programs."""

_SPREADS = frozenset(
    {"mpirun", "mpiexec", "srun", "numactl", "nohup", "time", "taskset"} | {"setsid", "env", "timeout", "nice", "nsys"}
)
"""Programs that start another one, with options of their own before it."""

_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")

_IN_FOLDER = re.compile(r"\$\{?\w+\}?/((?:[\w.-]+/)*[\w.-]*\d[bB]\b[\w.-]*)")
"""A model by its size, in a folder that a variable names."""

_RUN_BY_PYTHON = re.compile(r"#!.*\bpython")

_OF_PYTHON = frozenset({"-m", "-u", "-O", "-OO", "-B", "-E", "-I", "-s"})  # Options of Python before what it runs

_SCRIPT, _MODULE = re.compile(r".*\.py"), re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


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
        data = self.document.data
        named = data.get("--config") if isinstance(data, dict) else None
        return f"{self.program} {named}" if isinstance(named, str) else self.program

    @property
    def script(self) -> str:
        """The Python script that runs, as a path; empty where none is named."""
        words = self.program.split()
        named = next((word for word in words if _SCRIPT.fullmatch(word)), "")
        started = words[0] if words and _MODULE.fullmatch(words[0]) else ""  # by a launcher, behind its -m
        module = next((after for word, after in pairwise(words) if word == "-m"), started)
        return named or (f"{module.replace('.', '/')}.py" if module else "")

    @property
    def names_script(self) -> bool:
        """Whether a file of Python runs, whose name is all that tells whose it is; a module is named in full."""
        return any(_SCRIPT.fullmatch(word) for word in self.program.split())

    def serves(self, owner: Tool) -> bool:
        """Whether the program of a tool generates or evaluates rather than trains."""
        return any(word in self.program for word in owner.serves)


def tool_commands(script: Script, name: str) -> Iterator[Command]:
    """Yield the commands of a script that may start tools.

    Raises:
        DocumentError: a quote is not closed.
    """
    if script.open_quote is not None:
        raise DocumentError("a quote is not closed", place=Place(name, script.open_quote))
    alone: list[Word] = []
    for words in _continued(script.commands):
        if _is_inline_python(words) or words[0].text in _PRINTS or words[-1].text in _ASKS:
            continue
        if _OPTION.match(words[0].text):
            alone += words
            continue
        launcher, program = _programs(_submitted(words))
        if launcher:
            yield Command(_options(launcher, name), tools()[LAUNCHER])
        if program:
            called = " ".join(word.text for word in _before_options(program))
            yield Command(_options(program, name), _tool(called), called, script.environments.get(words[0].line, {}))
    if alone:
        yield Command(_options(alone, name))


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
        is_letter = _LETTER.fullmatch(part.text) is not None or (is_letter and not _OPTION.match(part.text))
        words += [] if is_letter else [part]  # Options of one letter, which any program may have, and their values
    return Command(_options(words if words and _OPTION.match(words[0].text) else [Word("", 0), *words], name))


def _submitted(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the command behind ``--``, as ``ray job submit -- python ...`` has it; all words where there is none."""
    while len(words) > 1 and words[0].text in _BEFORE:
        words = words[1:]
    if len(words) > 1 and words[0].text in _ENVIRONMENTS and words[1].text == "run":
        further = enumerate(words[2:], 2)
        starts = (at for at, word in further if words[at - 1].text not in _NAMED and _starts_program(word.text))
        words = words[next(starts, 0) :]
    at = next((index for index, word in enumerate(words) if word.text == "--"), len(words))
    behind = words[at + 1 :]
    return _wrapped(_in_image(behind if behind and not behind[0].text.startswith("-") else words))


def _starts_program(text: str) -> bool:
    """Whether a word is a program that runs Python, or one of a tool."""
    called = text.rpartition("/")[2]
    first_words = {program.split()[0] for tool in tools().values() for program in tool.programs}
    return _PYTHON.fullmatch(called) is not None or called in {"torchrun", "deepspeed", "accelerate", *first_words}


def _in_image(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return what an image runs that a command starts, as ``docker run --gpus all vllm/vllm-openai --model ...``."""
    if words[0].text.rpartition("/")[2] not in _CONTAINERS or not _RUNS_IN_IMAGE & {word.text for word in words[:4]}:
        return words
    at = next((index for index, word in enumerate(words) if index and program_of_image(word.text)), 0)
    before, entry = next(
        (pair for pair in enumerate(words) if words[pair[0] - 1].text == "--entrypoint"), (0, words[0])
    )
    if not at and before and _starts_program(entry.text) and len(words) > before + 1:
        at = before + 1  # an image of one's own
    if not at:
        return words[_program_starts(words) :]
    behind, image = words[at + 1 :], words[at]
    pairs = (word.text.removeprefix("--env=") for word in words[:at])
    variables = ((name, value) for name, equals, value in (pair.partition("=") for pair in pairs) if equals)
    program = program_of_image(image.text, variables) if not behind or behind[0].text.startswith("-") else ""
    program = entry.text.rpartition("/")[2] if 0 < before < at else program
    return (*(Word(part, image.line) for part in shlex.split(program)), *behind)


def _wrapped(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the Python that another program starts with options of its own, as ``numactl --membind=0 python ...``."""
    if any(_starts_launcher(words, index, word.text) for index, word in enumerate(words)):
        return words
    starts = (index for index, word in enumerate(words[:-1]) if _PYTHON.fullmatch(word.text))
    at = next((index for index in starts if words[index + 1].text == "-m" or _is_program(words, index + 1)), 0)
    if not at and words[0].text.rpartition("/")[2] in _SPREADS:
        at = _program_starts(words)
    return words[at:] if any(_OPTION.match(word.text) for word in words[:at]) else words


def _program_starts(words: Sequence[Word]) -> int:
    """Return where the program of a tool begins in a command that starts it; 0 where it starts none."""
    programs = {program for one in tools().values() for program in one.programs}
    for at, (before, word) in enumerate(pairwise(words), 1):
        # A program of one word that has no option is only named: ``docker run own/image which llama-server``.
        has_options = any(_OPTION.match(behind.text) for behind in words[at + 1 : at + 3])  # maybe after a model
        is_alone = has_options and bool({word.text, word.text.rpartition("/")[2]} & programs)
        if (is_alone or _starts_tool(words, at)) and ":" not in word.text and before.text not in _NAMED:
            return at
    return 0


def _is_inline_python(words: Sequence[Word]) -> bool:
    """Whether a command runs a program that stands in its own arguments: ``python -c "..."``."""
    texts = [word.text for word in words]
    return any(_PYTHON.fullmatch(text) and after == "-c" for text, after in pairwise(texts))


def _tool(called: str) -> Tool | None:
    """Return the tool whose program is called; None for another program."""
    return next((candidate for candidate in tools().values() if candidate.started(called)), None)


def _programs(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Return the words of a launcher, where there is one, and of the program that it starts."""
    starts = [index for index, word in enumerate(words) if _starts_launcher(words, index, word.text)]
    if not starts:
        return (), words
    rest = range(starts[-1] + 1, len(words))
    script = next((index for index in rest if _is_program(words, index) or _starts_tool(words, index)), None)
    if script is None:
        return words[starts[-1] :], ()
    return words[starts[-1] : script], words[script:]


def _starts_launcher(words: Sequence[Word], index: int, text: str) -> bool:
    called = text.rpartition("/")[2]
    following = words[index + 1].text if index + 1 < len(words) else ""
    before = words[:index] if words[0].text.rpartition("/")[2] in _SPREADS else ()
    return (
        called in {"torchrun", "deepspeed", "torch.distributed.launch", "torch.distributed.run"}
        or (called == "accelerate" and following == "launch")
    ) and (
        words[index - 1].text == "-m"
        or (before and not any(_PYTHON.fullmatch(word.text) or _SCRIPT.fullmatch(word.text) for word in before))
        or not any(_OPTION.match(word.text) and word.text not in {"-m", "-u"} for word in words[:index])
    )


def _is_program(words: Sequence[Word], index: int) -> bool:
    text, before = words[index].text, words[index - 1].text
    return _SCRIPT.fullmatch(text) is not None or before in {"-m", "--module"}


def _starts_tool(words: Sequence[Word], index: int) -> bool:
    """Whether a word and the next one are the program of a tool: ``swift sft``."""
    called = [word.text.rpartition("/")[2] for word in words[index : index + 2]]
    programs = (program.split() for tool in tools().values() for program in tool.programs)
    return any(program[:2] == called for program in programs if len(program) > 1)


def _before_options(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words of a command before its first option; ``-m`` names a module."""
    python = bool(words) and words[0].text.rpartition("/")[2].startswith("python")
    for word in words:
        if _OVERRIDE.fullmatch(word.text) or (_OPTION.match(word.text) and not (python and word.text in _OF_PYTHON)):
            return
        yield word


def _options(words: Sequence[Word], name: str) -> Document:
    """Return the options of a command; what stands alone behind the program is its ``model`` or its ``config``."""
    data: dict[str, Plain] = {}
    lines: dict[KeyPath, int] = {}
    given = list(_before_options(words))
    rest = list(words[len(given) :])
    while len(given) > 1 and _FURTHER.fullmatch(given[-1].text):
        rest.insert(0, given.pop())
    if len(given) > 1 and _TAKES_MODEL.fullmatch(given[-2].text):
        data["model"], lines["model",] = _plain(given[-1]), given[-1].line
    elif given and _CONFIGURATION.fullmatch(given[-1].text):
        data["config"], lines["config",] = given[-1].text, given[-1].line
    further: list[Word] = []
    while rest:
        word = rest.pop(0)
        if override := _OVERRIDE.fullmatch(word.text):
            data[override[1]], lines[override[1],] = _plain(replace(word, text=override[2])), word.line
        elif _OPTION.match(word.text):
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
    return named[1] if named is not None else None if word.is_open else word.text
