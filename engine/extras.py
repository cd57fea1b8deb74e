"""Optional parts of the program: the command that installs one where it runs, and the way to a MongoDB."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from capacity_tui.engine.errors import MissingPartError, Place, StorageError

if TYPE_CHECKING:
    from pymongo import MongoClient

    Client: TypeAlias = MongoClient[dict[str, object]]

PROGRAM = "capacity-tui"
_PIPX_FILE = "pipx_metadata.json"  # Lies in each environment that pipx made
_EXTRA = r"""\bextra\s*==\s*["']([^"']+)["']"""


def install_command(extra: str) -> str:
    """Return the command that installs what an extra needs beside this program, whatever installed the program.

    It names the packages of the extra and never the program, which no index need have.

    Args:
        extra: name of the extra, as in ``pyproject.toml``.
    """
    from importlib.metadata import requires  # noqa: PLC0415 - loaded only where something is missing

    return command_for(packages_of(extra, requires(PROGRAM) or ()), Path(sys.prefix), sys.executable)


def packages_of(extra: str, requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the packages of an extra with their bounds, from the requirements of a distribution."""
    parts = (requirement.partition(";") for requirement in requirements)
    return tuple(package.strip() for package, _, marker in parts if extra in re.findall(_EXTRA, marker))


def command_for(packages: Sequence[str], environment: Path, python: str, has_pip: bool | None = None) -> str:
    """Return the command that installs packages into an environment.

    Args:
        packages: what to install, with bounds.
        has_pip: whether pip is installed there; by default it is looked for.
    """
    import shlex  # noqa: PLC0415 - as above

    if (environment / _PIPX_FILE).exists():
        return shlex.join(("pipx", "inject", PROGRAM, *packages))
    if find_spec("pip") is not None if has_pip is None else has_pip:
        return shlex.join((python, "-m", "pip", "install", *packages))
    return shlex.join(("uv", "pip", "install", "--python", python, *packages))


@contextmanager
def importing(extra: str, title: str) -> Iterator[None]:
    """Import what an extra brings, within a block; raises MissingPartError if it is not installed, or broken.

    Args:
        title: of that error, such as ``torch is not installed``.
    """
    try:
        yield
    except (ImportError, OSError) as error:
        raise MissingPartError(title, str(error), f"install it: {install_command(extra)}") from error


EXTRA = "mongodb"
DATABASE = "capacity_tui"  # The database, where a URI names none
URIS = ("mongodb://", "mongodb+srv://")
ANSWER_MILLISECONDS = 3000


def without_password(uri: str) -> str:
    kind, mark, address = uri.rpartition("://")
    return f"{kind}{mark}{address.rpartition('@')[2]}"


def require_pymongo(wanted_by: str) -> None:
    """Make sure that the driver is there.

    Args:
        wanted_by: what needs it, such as ``a history in MongoDB``.

    Raises:
        MissingPartError: it is not installed.
    """
    with importing(EXTRA, f"{wanted_by} needs pymongo"):
        import pymongo  # noqa: F401, PLC0415 - an optional extra


@contextmanager
def connected(uri: str, refused: str) -> Iterator[Client]:
    """Connect for a block.

    Args:
        refused: what cannot be done where it does not serve, such as ``the history cannot be used``.

    Raises:
        StorageError: the database cannot be reached, or refuses; passwords are left out.
    """
    from pymongo import MongoClient  # noqa: PLC0415 - an optional extra
    from pymongo.errors import PyMongoError  # noqa: PLC0415

    wait = ANSWER_MILLISECONDS
    try:
        client: Client = MongoClient(uri, serverSelectionTimeoutMS=wait, connectTimeoutMS=wait)
    except (PyMongoError, ValueError) as error:
        raise _refused(refused, uri, error) from error
    try:
        with client:
            yield client
    except PyMongoError as error:
        raise _refused(refused, uri, error) from error


def _refused(title: str, uri: str, error: Exception) -> StorageError:
    reason = str(error).split(",", 1)[0].split(" (configured", 1)[0]
    return StorageError(title, reason, "check that it runs, and its URI", Place(without_password(uri)))
