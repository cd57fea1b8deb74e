"""Shell scripts read without being run: their commands with variables, arrays, functions and here-documents put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from capacity_tui.engine.plan.imports.scripts.choices import Choices, glob_of, outcomes
from capacity_tui.engine.plan.imports.scripts.shell_words import (
    ASSIGNMENT,
    Variables,
    Word,
    ends_line,
    joined,
    numbered,
    seen_of,
    slurm_variables,
    source_of,
    within_node,
)
from capacity_tui.engine.plan.imports.scripts.starting import PYTHON, SHELLS, inner_script, set_for
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_DEEPEST = 12  # Scripts within scripts and functions within functions that are followed

_RUN_INPUT = SHELLS | {"sbatch", "ssh"}  # Programs that run a here-document as a script

_READ_IN = frozenset({".", "source"})  # Commands that read another script in
_STARTS_SCRIPT = _RUN_INPUT | {"srun", "exec", "nohup"}

_SCRIPT = re.compile(r".*\.(?:sh|bash|slurm|sbatch)", re.DOTALL)

_WRITERS = frozenset({"cat", "tee"})  # Programs that write a here-document to a file as it is
_APPLIES = frozenset({"kubectl", "oc"})  # Programs that take one for what is to run on a cluster

_BLOCKS = frozenset(
    {"program", "pipeline", "subshell", "compound_statement", "do_group", "while_statement", "negated_command", "ERROR"}
    | {"variable_assignments"}
)

_REMARK = re.compile(r"`\s*#[^`\n]*`")  # Between options, where a comment would hide what follows

_PLACEHOLDER = re.compile(r"(?<==)<[^<>()\n]*>|(?<=\s)<[A-Za-z][\w.-]*>(?=\s)")
"""What a reader is to put in, as ``DATA=<path to data>`` and ``--port <port>``."""

_END = "_END_OF_TEXT_"  # Of a here-document that stands for a text of another file

_BARE = re.compile(r"(?<=[*=])\$([A-Za-z_]\w*)(?=[+,])")  # In [0]*$DENSE+[1]*$REST, which the grammar tears apart

_OF_ENTRY = re.compile(r"\[[\"']?([^\]\"']+)[\"']?\]=[\"']?(.*?)[\"']?", re.DOTALL)  # What an array holds under a name


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a script writes from a here-document."""

    name: str
    text: str
    line: int  # of the script on which its text begins


@dataclass(slots=True)
class Script:
    """What a script would do."""

    # the words of each command, in the order of the script
    commands: list[tuple[Word, ...]] = field(default_factory=list)
    untaken: list[tuple[Word, ...]] = field(default_factory=list)  # those of branches that its start may take instead
    files: list[WrittenFile] = field(default_factory=list)  # what it writes from here-documents
    variables: dict[str, tuple[Word, ...]] = field(default_factory=dict)  # the words of its variables when it ends
    exported: set[str] = field(default_factory=set)  # names of the variables that programs see
    # the variables that each command sees, by the line on which it begins
    environments: dict[int, Mapping[str, str]] = field(default_factory=dict)
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)  # what branches make of a variable, by its name
    loops: dict[str, tuple[str, ...]] = field(default_factory=dict)  # what loops go through, by their variables
    turns: list[tuple[str, int, range]] = field(default_factory=list)  # those, how often they turn, and their lines
    everything: bool = False  # whether it is read for what it does only when it is told so
    ran: set[str] = field(default_factory=set)  # the names of the functions that were read
    open_quote: int | None = None  # the line on which a quote begins that is never closed; None where all are


def read_script(
    text: str, other_script: Callable[[str], str | None] | None = None, *, everything: bool = False, devices: str = ""
) -> Script:
    """Return the commands of a shell script and the files that it writes.

    Branches are followed where variables of the script decide them, else all are; loops run once, functions where they
    are called. What only the shell can know, as the output of a program, stays as it is written. ``other_script``
    gives the text of one that this one reads in or starts; ``everything`` is read too that is never called or chosen.
    """
    script = Script(variables=seen_of(devices), everything=everything)
    reader = _Reader(script.variables, 0, None, script, {}, 0, other_script)
    reader.read(text)
    for name in [*reader.functions] if everything else ():
        reader.run(name)
    return script


def filled_text(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with variables and their defaults put in as a here-document has them: ``${LENGTH:-8192}``."""
    root = _parser().parse(f"cat <<{_END}\n{text}\n{_END}\n".encode()).root_node
    body = next(within_node(root, "heredoc_body"), None)
    values = {name: tuple(Word(word, 0, True) for word in (value,) if word) for name, value in variables.items()}
    return text if body is None else Variables(values, 0, None).filled(body).removesuffix("\n")


@cache
def _parser() -> Parser:
    import tree_sitter_bash  # noqa: PLC0415 - few files are shell scripts
    from tree_sitter import Language, Parser  # noqa: PLC0415

    return Parser(Language(tree_sitter_bash.language()))


@dataclass(slots=True)
class _Reader(Choices):
    """A script while it is read."""

    script: Script  # what was read so far
    functions: dict[str, Node]  # bodies by name
    depth: int  # scripts and functions around it
    other_script: Callable[[str], str | None] | None  # the text of a script that is read in or started

    def read(self, text: str) -> None:
        self._take(slurm_variables(text, "#SBATCH"))
        plain = _BARE.sub(r"${\1}", _PLACEHOLDER.sub("", _REMARK.sub("", text)))
        root = _parser().parse(plain.encode()).root_node
        broken = (
            child
            for child in within_node(root, "ERROR")
            if source_of(child).count("'") % 2 or source_of(child).count('"') % 2
        )
        if not self.depth and root.has_error and (first := next(broken, None)) is not None:
            self.script.open_quote = self.line(first)
        self._statement(root)

    def _take(self, variables: Iterator[tuple[str, tuple[Word, ...]]]) -> None:
        """Take variables of a job, which all of its programs see."""
        for name, words in variables:
            self.values[name] = words
            self.script.exported.add(name)

    def _statement(self, node: Node) -> None:
        if node.type == "list":
            self._list(node)
        elif node.type in _BLOCKS:
            for child in node.named_children:
                self._statement(child)
        elif node.type in _STATEMENTS:
            _STATEMENTS[node.type](self, node)

    # Statements

    def _list(self, node: Node) -> None:
        """Read what stands on both sides of ``&&`` or ``||``, the second where no test before it rules it out."""
        first, *rest = node.named_children
        self._statement(first)
        holds, before = self.holds(first), dict(self.values)
        if holds is None or holds is any(child.type == "&&" for child in node.children):
            self._all(rest)
        if holds is None and first.type == "test_command":
            self.script.choices.update(outcomes([before, dict(self.values)]))

    def _declare(self, node: Node) -> None:
        is_exported = source_of(node).startswith("export")
        for child in node.named_children:
            if child.type == ASSIGNMENT:
                self._assign(child)
            if is_exported:
                self.script.exported.add(source_of(child).partition("=")[0])

    def _unset(self, node: Node) -> None:
        names = [source_of(child) for child in node.named_children]
        for name in names if "-f" not in names else ():
            self.values.pop(name, None)
            self.script.exported.discard(name)

    def _define(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions[source_of(name)] = body

    def _assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        key = self.name_of(name)
        words = self._values(value)
        self.script.choices.pop(key, None)
        for entry in filter(None, (_OF_ENTRY.fullmatch(word.text) for word in words)):
            self.values[f"{key}[{entry[1]}]"] = (Word(entry[2], self.line(node), True),)
        is_added = any(child.type == "+=" for child in node.children)
        if not is_added:
            self.values[key] = words
        elif value is not None and value.type == "array":
            self.values[key] = (*self.values.get(key, ()), *words)
        else:
            before, added = joined(self.values.get(key, ())), joined(words)
            self.values[key] = (Word(before + added, self.line(node)),)

    def _values(self, value: Node | None) -> tuple[Word, ...]:
        if value is None:
            return ()
        if value.type == "array":
            entries = (child for child in value.named_children if child.type != "comment")
            return tuple(word for entry in entries for word in self.words(entry))
        return (Word(joined(self.words(value, is_split=False)), self.line(value), True),)

    def _command(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        parts = [child for child in node.children_by_field_name("argument") if child.type != "heredoc_redirect"]
        own = [child for child in node.named_children if child.type == ASSIGNMENT]
        for at in reversed(range(len(own))):
            if ends_line(node, own[at]):  # The grammar counts lines of several assignments to the command below them
                for child in own[: at + 1]:
                    self._assign(child)
                own = own[at + 1 :]
                break
        named = ((child.child_by_field_name("name"), child) for child in own)
        alone = {source_of(name): self._values(one.child_by_field_name("value")) for name, one in named if name}
        words = [word for part in ([name] if name else []) + parts for word in self.words(part)]
        further, words = set_for(words)  # env NAME=value program
        alone |= further
        if not words or self.shifts(words):
            return
        if words[0].text in self.functions and self.depth < _DEEPEST:
            self._within(words[1:]).run(words[0].text)
            return
        inner = inner_script(words)
        if inner is not None and self.depth < _DEEPEST:
            self._within(()).read_inner(inner.text, inner.line)
            return
        other, arguments = self._other_script(words) if self.depth < _DEEPEST else (None, [])
        if other is not None:
            reader = self._within(arguments)
            reader.first_line, reader.only_line = 0, words[0].line
            reader.values = {**reader.values, **alone} if alone else reader.values
            of_it = alone.keys() - self.script.exported
            self.script.exported |= of_it
            reader.read(other)
            self.script.exported -= of_it
            return
        if words[0].text == "srun":
            self._take(slurm_variables(joined(words), r"srun(?:\s.*)?"))
        shared = {name: joined(self.values[name]) for name in self.script.exported & self.values.keys()}
        self.script.environments[words[0].line] = shared | {name: joined(values) for name, values in alone.items()}
        self.script.commands.append(tuple(words))

    def run(self, name: str) -> None:
        """Read the body of a function, once where all are read: they may call each other in any number of ways."""
        if not (self.script.everything and name in self.script.ran):
            self.script.ran.add(name)
            self._statement(self.functions[name])

    def read_inner(self, text: str, line: int) -> None:
        """Read a script that is an argument or a here-document, which begins on a line."""
        self.first_line = line - 1
        self.read(text)

    def _within(self, arguments: Sequence[Word]) -> _Reader:
        values = {**self.values, **numbered(arguments)} if arguments else self.values
        return _Reader(
            values, self.first_line, self.only_line, self.script, self.functions, self.depth + 1, self.other_script
        )

    def _other_script(self, words: Sequence[Word]) -> tuple[str | None, Sequence[Word]]:
        """Return the text of the script that a command reads in or starts, and what that is given; None for others."""
        called = words[0].text.rpartition("/")[2]
        rest = words[1:] if called in _STARTS_SCRIPT else words[:1]
        written = {file.name.removeprefix("./"): file.text for file in self.script.files}
        if text := next((written[name] for word in rest if (name := word.text.removeprefix("./")) in written), None):
            return text, ()
        if called in _READ_IN:
            return (self.other_script(words[1].text) if words[1:] and self.other_script else None), ()
        at = next((at for at, word in enumerate(words) if word in rest and _SCRIPT.fullmatch(word.text)), None)
        if at is None or self.other_script is None:
            return None, ()
        return self.other_script(words[at].text), words[at + 1 :]

    def _redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        for redirect in node.children_by_field_name("redirect"):
            text = next((child for child in redirect.named_children if child.type == "heredoc_body"), None)
            if text is not None:
                self._here_document(node, body, text)
                return
        if body is not None:
            self._statement(body)

    def _here_document(self, node: Node, body: Node | None, text: Node) -> None:
        words = self._command_words(body)
        target = next((redirect for redirect in within_node(node, "file_redirect")), None)
        written = self.filled(text)
        destination = target.child_by_field_name("destination") if target is not None else None
        if words and words[0].text == "read" and words[-1].text.isidentifier():
            self.values[words[-1].text] = (Word(written, self.line(text)),)
        elif words and words[0].text in _WRITERS:
            name = joined(self.words(destination)) if destination is not None else words[-1].text
            self.script.files.append(WrittenFile(name, written, self.line(text)))
        elif words and words[0].text.rpartition("/")[2] in _RUN_INPUT and self.depth < _DEEPEST:
            self._within(()).read_inner(written, self.line(text))
        elif words and words[0].text in _APPLIES:
            self.script.files.append(WrittenFile(words[0].text, written, self.line(text)))
        elif words and PYTHON.fullmatch(words[0].text) and all(word.text.startswith("-") for word in words[1:]):
            self.script.files.append(WrittenFile("-", written, self.line(text)))
            self.script.commands.append((words[0], Word("-", self.line(text))))

    def _command_words(self, body: Node | None) -> list[Word]:
        if body is None or body.type != "command":
            return []
        name = body.child_by_field_name("name")
        parts = ([name] if name else []) + body.children_by_field_name("argument")
        return [word for part in parts for word in self.words(part)]

    def _branches(self, node: Node) -> None:
        """Read the branches that are taken, or may be; what these make of a variable is noted where they differ."""
        tests, bodies = _branches_of(node)
        is_open, before, ways = any(map(self.asks_argument, tests)), dict(self.values), [dict(self.values)]
        is_open |= any(self.depends_on(test, self.script.choices) for test in tests)
        is_over = False
        for at, body in enumerate(bodies):
            self._all([] if is_over else tests[at : at + 1])  # A condition is a command as well: ``if start; then``
            holds = not is_over and (self.holds(tests[at]) if at < len(tests) else True)
            is_open, is_over = is_open or holds is None, is_over or holds is True
            if holds is not False:  # of those that may be taken the last counts
                self.begin_with(before)
                self._all(body)
                ways.append(dict(self.values))
            elif is_open:
                ways.append(self._looked_at(body))
        if is_open:
            self.script.choices.update(outcomes(ways[int(len(tests) < len(bodies)) :]))

    def _looked_at(self, nodes: Sequence[Node]) -> dict[str, tuple[Word, ...]]:
        """Return what variables would hold behind a branch that is not taken."""
        place = self.first_line, self.only_line
        other = _Reader({**self.values}, *place, Script(), {**self.functions}, self.depth, self.other_script)
        other._all(nodes)
        self.script.untaken += other.script.commands
        return other.values

    def _all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._statement(node)

    def _loop(self, node: Node) -> None:
        (name, values), body = self.turns(node), node.child_by_field_name("body")
        if name and values:
            self.values[name] = (values[0],)
            self.script.loops[name] = tuple(dict.fromkeys(word.text for word in values))
            lines = range(self.line(node), self.line(node) + source_of(node).count("\n") + 1)
            self.script.turns.append((name, len(values), lines))
        if body is not None:
            self._statement(body)

    def _cases(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        text = joined(self.words(value, is_split=False)) if value is not None else "$"
        for item in node.named_children:
            if item.type != "case_item":
                continue
            wanted = item.children_by_field_name("value")
            patterns = [glob_of(pattern, source_of(pattern).strip("\"'")) for pattern in wanted]
            if "$" in text and self.script.everything:
                self._all(item.named_children[len(patterns) :])
            elif "$" not in text and any(fnmatchcase(text, pattern) for pattern in patterns):
                self._all(item.named_children[len(patterns) :])
                return


_STATEMENTS: Mapping[str, Callable[[_Reader, Node], None]] = {
    "variable_assignment": _Reader._assign,
    "declaration_command": _Reader._declare,
    "unset_command": _Reader._unset,
    "command": _Reader._command,
    "redirected_statement": _Reader._redirected,
    "function_definition": _Reader._define,
    "if_statement": _Reader._branches,
    "for_statement": _Reader._loop,
    "c_style_for_statement": _Reader._loop,
    "case_statement": _Reader._cases,
}


def _branches_of(node: Node) -> tuple[list[Node], list[list[Node]]]:
    """Return the conditions of an ``if`` and its branches, one more where it ends with ``else``."""
    parts = [child for child in node.named_children if child.type not in {"elif_clause", "else_clause"}]
    tests, bodies = parts[:1], [parts[1:]]
    for child in node.named_children[len(parts) :]:
        is_last = child.type == "else_clause"
        tests += [] if is_last else child.named_children[:1]
        bodies.append(child.named_children[0 if is_last else 1 :])
    return tests, bodies
