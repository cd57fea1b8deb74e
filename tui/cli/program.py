"""The program as a command: its groups of commands, help, version, and the options of the screen."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import click
from click.shell_completion import CompletionItem

from capacity_tui.engine.errors import CapacityError

PROGRAM = "capacity-tui"
_EPILOG = """\b
Exit codes: 0 done, 1 the plan does not fit (plan --check), 2 bad input, 3 a missing part.
Shell completion, for bash (or zsh_source, fish_source):
  eval "$(_CAPACITY_TUI_COMPLETE=bash_source capacity-tui)"
"""


class Topic(NamedTuple):
    """A group of commands in the help."""

    title: str  # its heading
    about: str  # what its commands are for


class Entry(NamedTuple):
    """A command of the help."""

    topic: str  # key of its topic
    path: str  # its words
    # where it is defined, below this package, with its name there where that differs; empty for a group whose commands
    # have entries
    module: str
    line: str  # what it does

    @property
    def parent(self) -> str:
        return self.path.rpartition(" ")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition(" ")[2]

    def load(self) -> click.Command:
        module, _, attribute = self.module.partition(":")
        command = getattr(import_module(f"{__package__}.{module}"), attribute or self.name.replace("-", "_"))
        return cast("click.Command", command)


TOPICS = {
    "plan": Topic("Plan", "Estimate plans, check them, and keep them."),
    "choose": Topic("Choose", "Search over plans, ask backwards, and compare hardware that is rented."),
    "run": Topic("Run", "Watch, guard, profile and measure runs, and look them up later."),
    "machine": Topic("Machine and cluster", "Detect and measure this machine, or the nodes of a cluster."),
    "data": Topic("Data", "Look up the catalogues, estimate storage, and serve coding assistants."),
}
IMPORT = "import"  # The page of help on files of other tools
with Path(__file__).with_name("commands.csv").open(encoding="utf-8", newline="") as file:
    ENTRIES = tuple(Entry(**row) for row in csv.DictReader(file))
"""Every command; those of `history`, `sample` and `scaling` stand in their modules."""
OF_DOCUMENTS = {"predict": "plan NAME", "list-examples": "examples", "show-example": "examples NAME"}
"""Commands of other programs that people come from, and what does the same here."""
ABOUT = {
    "fleet": "Compare instances: which machines, at what price, and is it worth moving.",
    "cluster": "Plan for the cluster you already have: its nodes, their measured speed, their jobs.\n\n"
    "Nodes are reached through Slurm, a Ray cluster, or the user's own ssh.",
    "storage": "Estimate storage: patterns of a corpus, databases that hold them, data of a training.",
}


class UsageError(CapacityError):
    """A command line that cannot be understood."""


class LazyGroup(click.Group):
    """Commands of the table, each loaded when it is asked for: one need not wait for what the others import.

    Args:
        path: the words of the group; empty for the program.
        options: whatever a Click group takes.
    """

    def __init__(self, *, path: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._entries = {entry.name: entry for entry in ENTRIES if entry.parent == path}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._entries, *(name for name in super().list_commands(ctx) if name not in self._entries)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name; None where there is none: then all are loaded, to tell the nearest."""
        known = cmd_name in self._entries or cmd_name in self.commands
        for name in (cmd_name,) if known else self._entries:
            if name not in self.commands and name in self._entries:
                self.add_command(_loaded(self._entries[name]), name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, those of the program by topic."""
        del ctx
        topics = dict.fromkeys(entry.topic for entry in self._entries.values())
        with formatter.section("Commands"):
            for topic in topics:
                rows = [(entry.name, entry.line) for entry in self._entries.values() if entry.topic == topic]
                if len(topics) == 1:
                    formatter.write_dl(rows)
                    continue
                with formatter.section(f"{TOPICS[topic].title} ({PROGRAM} help {topic})"):
                    formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin like a word, without loading any."""
        fitting = (entry for entry in self._entries.values() if entry.name.startswith(incomplete))
        items = [CompletionItem(entry.name, help=entry.line) for entry in fitting]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


def _loaded(entry: Entry) -> click.Command:
    if entry.module:
        command = entry.load()
        command.short_help = entry.line
    else:
        command = LazyGroup(path=entry.path, name=entry.name, help=ABOUT[entry.path], short_help=entry.line)
    command.epilog = f"Of the group {TOPICS[entry.topic].title}: {PROGRAM} help {entry.topic}"
    return command


def run_command(arguments: list[str]) -> int:
    """Run one command line and return its exit code.

    Raises:
        CapacityError: bad usage, and whatever the command refuses.
        KeyboardInterrupt: the user had enough.
    """
    try:
        code = group.main(arguments, prog_name=PROGRAM, standalone_mode=False)
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return UsageError.exit_code
    except click.UsageError as error:
        name = error.ctx.command_path if error.ctx else PROGRAM
        here = OF_DOCUMENTS.get(arguments[0] if arguments else "")
        hint = f"see `{name} --help`" if here is None else f"here it is `{PROGRAM} {here}`"
        raise UsageError(error.format_message().rstrip("."), hint=hint) from None
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None
    return code if isinstance(code, int) else 0


@click.group(
    cls=LazyGroup, invoke_without_command=True, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM)
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    help="Open a plan on the screen: a file, an example, a saved plan, or one line in quotes.",
)
@click.option("--gpu", metavar="NAME", help='Plan for this hardware instead, such as "8xH100-SXM".')
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.option("--theme", metavar="NAME", help="Theme by name, or a theme file.")
@click.pass_context
def group(
    context: click.Context, plan_path: Path | None, gpu: str | None, ascii_only: bool, no_mouse: bool, theme: str | None
) -> int:
    """Say whether a machine-learning run fits, how long it takes and what it costs.

    Without a command the screen opens.
    """
    screen_options = {
        "--plan": plan_path,
        "--gpu": gpu,
        "--ascii": ascii_only,
        "--no-mouse": no_mouse,
        "--theme": theme,
    }
    if context.invoked_subcommand is not None:
        given = [name for name, value in screen_options.items() if value]
        if given:
            raise click.UsageError(f"{given[0]} before a command is for the screen: put it behind the command")
        return 0
    from capacity_tui.tui.app import run

    return run(plan_path=plan_path, gpu=gpu, ascii=ascii_only, mouse=not no_mouse, theme=theme)


@group.command("help", hidden=True)
@click.argument("words", nargs=-1, metavar="[GROUP|COMMAND]")
@click.pass_context
def help_page(context: click.Context, words: Sequence[str]) -> None:
    """Show the page of a group of commands, or the help of a command."""
    program = context.find_root()
    if len(words) == 1 and words[0] in TOPICS:
        click.echo(topic_page(words[0], program.make_formatter()))
        return
    if words == (IMPORT,):
        click.echo(tools_page(program.make_formatter()))
        return
    command: click.Command = group
    for word in words:
        inner = command.get_command(program, word) if isinstance(command, click.Group) else None
        if inner is None:
            raise click.UsageError(f"no group or command is called {word!r}; groups: {', '.join((*TOPICS, IMPORT))}")
        program = click.Context(inner, info_name=word, parent=program)
        command = inner
    click.echo(command.get_help(program))


def tools_page(formatter: click.HelpFormatter) -> str:
    from capacity_tui.engine.plan.imports import known_tools

    with formatter.section(f"Files of other tools ({PROGRAM} audit FILE, --import FILE)"):
        formatter.write_text(f"Read are files and commands of {', '.join(known_tools())}.")
        formatter.write_paragraph()
        formatter.write_text("And scripts, notebooks and manifests that start them or call them.")
    return formatter.getvalue().rstrip("\n")


def topic_page(key: str, formatter: click.HelpFormatter) -> str:
    topic = TOPICS[key]
    with formatter.section(topic.title):
        formatter.write_text(topic.about)
        formatter.write_paragraph()
        formatter.write_dl([(entry.path, entry.line) for entry in ENTRIES if entry.topic == key])
    formatter.write_paragraph()
    formatter.write_text(f"{PROGRAM} COMMAND --help tells more.")
    return formatter.getvalue().rstrip("\n")
