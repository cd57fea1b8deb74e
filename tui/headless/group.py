"""The commands together: help, version, and the options of the screen."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.headless.lazy import LazyGroup, homes_of

PROGRAM = "capacity-tui"
_EPILOG = """\b
Exit codes: 0 done, 1 the plan does not fit (plan --check), 2 bad input, 3 a missing part.
Shell completion, for bash (or zsh_source, fish_source):
  eval "$(_CAPACITY_TUI_COMPLETE=bash_source capacity-tui)"
"""


_HOMES = homes_of(
    __package__ or "",
    {
        "accuracy": "accuracy",
        "assistant.serve": "mcp",
        "audit": "audit",
        "catalogue": "hardware instances models workloads",
        "cluster.group": "cluster",
        "examples": "examples",
        "fleet.group": "fleet",
        "growth.configurations": "bench-configs",
        "growth.scaling": "scaling",
        "runs.guard": "guard",
        "runs.history": "history",
        "machine": "configs detect",
        "measure": "calibrate sample",
        "runs.monitor": "monitor",
        "needs": "need",
        "plans": "plan",
        "runs.profile": "profile",
        "saved": "plans",
        "schemas": "schema",
        "search": "search",
        "sensitivity": "sensitivity",
        "storage.group": "storage",
        "validating": "validate",
    },
)


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
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return UsageError.exit_code
    except click.UsageError as error:
        name = error.ctx.command_path if error.ctx else PROGRAM
        raise UsageError(error.format_message().rstrip("."), hint=f"see `{name} --help`") from None
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None
    return code if isinstance(code, int) else 0


@click.group(
    cls=LazyGroup,
    homes=_HOMES,
    invoke_without_command=True,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM)
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    help="Open a plan on the screen: a file, an example, a saved plan, or one line in quotes.",
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
