"""Patterns in a collection of the user's MongoDB, which is gone afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias, cast

from capacity_tui.engine.mongodb import DATABASE, connected, require_pymongo, without_password
from capacity_tui.engine.storage.databases.database import Database, DatabaseSize
from capacity_tui.engine.storage.databases.patterns import Pattern

if TYPE_CHECKING:
    from pymongo.collection import Collection

    from capacity_tui.engine.mongodb import Client

    Patterns: TypeAlias = Collection[dict[str, object]]

HOW = "acknowledged as the URI says, by the first server where it says nothing"
_PREFIX = "capacity_tui_bench_"


@contextmanager
def mongodb_database(uri: str) -> Iterator[Database]:
    """Make a collection of a name that nobody has, for a block; in the database of the URI.

    Raises:
        MissingPartError: pymongo is not installed.
        StorageError: the database cannot be reached, or refuses.
    """
    require_pymongo("MongoDB")
    with connected(uri, "MongoDB cannot be measured") as client:
        collection = client.get_default_database(DATABASE)[f"{_PREFIX}{uuid.uuid4().hex}"]
        try:
            yield _MongoDatabase(client, collection, uri)
        finally:
            collection.drop()


class _MongoDatabase:
    """See ``Database``."""

    def __init__(self, client: Client, collection: Patterns, uri: str) -> None:
        self.place = without_password(uri)
        self.version = f"MongoDB {client.server_info()['version']}"
        self.how = HOW
        self._client, self._collection = client, collection
        collection.create_index("name", unique=True)
        collection.create_index([("level", 1), ("frequency", 1)])

    def insert(self, patterns: Sequence[Pattern]) -> None:
        self._collection.insert_many(
            {"name": each.name, "level": each.level, "frequency": each.frequency, "words": list(each.words)}
            for each in patterns
        )

    def frequency(self, name: str) -> int | None:
        found = self._collection.find_one({"name": name})
        return None if found is None else int(cast("int", found["frequency"]))

    def size(self) -> DatabaseSize:
        from pymongo.errors import OperationFailure  # noqa: PLC0415 - an optional extra

        with suppress(OperationFailure):  # whoever may not have all written out sees what was a minute ago
            self._client.admin.command("fsync")
        told = self._collection.database.command("collStats", self._collection.name)
        stats = cast("Mapping[str, int]", told)
        indexes = int(stats["totalIndexSize"])
        return DatabaseSize(int(stats["storageSize"]) + indexes, indexes)
