"""The commands together: help, version, and the options of the screen."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import cast

import click

from capacity_tui.engine.api import CapacityError

PROGRAM = "capacity-tui"
_EPILOG = """\b
Exit codes: 0 done, 1 the plan does not fit (plan --check), 2 bad input, 3 a missing part.
Shell completion, for bash (or zsh_source, fish_source):
  eval "$(_CAPACITY_TUI_COMPLETE=bash_source capacity-tui)"
"""


_HOMES = {
    command: module
    for module, commands in {
        "accuracy": "accuracy",
        "audit": "audit",
        "catalogue": "hardware instances models",
        "examples": "examples",
        "machine": "configs detect",
        "measure": "calibrate sample",
        "needs": "need",
        "plans": "plan validate",
        "saved": "plans",
        "search": "search",
        "sensitivity": "sensitivity",
    }.items()
    for command in commands.split()
}
"""The module beside this one that has each command."""


class Commands(click.Group):
    """The commands, each loaded when it is asked for: one need not wait for what the others import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted({*_HOMES, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name; None where there is none: then all are loaded, to tell the nearest."""
        for name in (cmd_name,) if cmd_name in _HOMES else _HOMES:
            if name not in self.commands:
                self.add_command(cast("click.Command", getattr(import_module(f"{__package__}.{_HOMES[name]}"), name)))
        return super().get_command(ctx, cmd_name)


class UsageError(CapacityError):
    """A command line that cannot be understood."""


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
    except click.UsageError as error:
        name = error.ctx.command_path if error.ctx else PROGRAM
        raise UsageError(error.format_message().rstrip("."), hint=f"see `{name} --help`") from None
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None
    return code if isinstance(code, int) else 0


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM)
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    help="Open a plan on the screen: a file, an example or a saved plan.",
)
@click.option("--gpu", metavar="NAME", help='Plan for this hardware instead, such as "8xH100-SXM".')
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.option("--theme", metavar="NAME", help="Theme by name, or a theme file.")
@click.pass_context
def group(
    context: click.Context,
    plan_path: Path | None,
    gpu: str | None,
    ascii_only: bool,
    no_mouse: bool,
    theme: str | None,
) -> int:
    """Say whether a machine-learning run fits, how long it takes and what it costs.

    Without a command the screen opens.
    """
    of_the_screen = {
        "--plan": plan_path, "--gpu": gpu, "--ascii": ascii_only, "--no-mouse": no_mouse, "--theme": theme
    }  # fmt: skip
    if context.invoked_subcommand is not None:
        given = [name for name, value in of_the_screen.items() if value]
        if given:
            raise click.UsageError(f"{given[0]} before a command is for the screen: put it behind the command")
        return 0
    from capacity_tui.tui.app import run

    return run(plan_path=plan_path, gpu=gpu, ascii=ascii_only, mouse=not no_mouse, theme=theme)
