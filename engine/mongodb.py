"""One way to a MongoDB that the user names, for whatever keeps something there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from capacity_tui.engine.errors import MissingPartError, Place, StorageError

if TYPE_CHECKING:
    from pymongo import MongoClient

    Client: TypeAlias = MongoClient[dict[str, object]]

EXTRA = "mongodb"
DATABASE = "capacity_tui"
"""The database, where a URI names none."""
URIS = ("mongodb://", "mongodb+srv://")
ANSWER_MILLISECONDS = 3000


def without_password(uri: str) -> str:
    """Return a URI without user and password."""
    kind, mark, rest = uri.rpartition("://")
    return f"{kind}{mark}{rest.rpartition('@')[2]}"


def require_pymongo(wanted_by: str) -> None:
    """Make sure that the driver is there.

    Args:
        wanted_by: what needs it, such as ``a history in MongoDB``.

    Raises:
        MissingPartError: it is not installed.
    """
    try:
        import pymongo  # noqa: F401, PLC0415 - an optional extra
    except ImportError as error:
        from capacity_tui.engine.extras import install_command  # noqa: PLC0415 - only where it is missing

        hint = f"install it: {install_command(EXTRA)}"
        raise MissingPartError(f"{wanted_by} needs pymongo", str(error), hint) from error


@contextmanager
def connected(uri: str, refused: str) -> Iterator[Client]:
    """Connect for a block.

    Args:
        uri: which database.
        refused: what cannot be done where it does not serve, such as ``the history cannot be used``.

    Raises:
        StorageError: the database cannot be reached, or refuses; no password is told.
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


def _refused(what: str, uri: str, error: Exception) -> StorageError:
    reason = str(error).split(",", 1)[0]
    return StorageError(what, reason, "check that it runs, and its URI", Place(without_password(uri)))
