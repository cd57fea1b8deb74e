"""Rows about the data of a training: how they are stored, and where they are read from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, model_validator

from capacity_tui.engine.catalog.rows.base import Row

Holds = Literal["tokens", "images", "features"]
"""What one unit of a training's data is."""

DataSource = Literal["local", "network", "bucket", "streaming"]
"""Where a plan says that its data are: on the node's disk, on shared files, as objects, with whoever publishes them."""

CacheName = Literal["ram", "nvme", "disk"]


class DataFormat(Row):
    """A form in which the data of a training are stored."""

    holds: tuple[Holds, ...] = Field(min_length=1, description="kinds of data it is for; the first such row is usual")
    bytes_per_token: PositiveFloat | None = Field(None, description="stored bytes; none for numbers of tokens")
    bytes_per_sample: PositiveFloat | None = Field(None, description="stored bytes of one sample")
    bytes_per_number: PositiveFloat | None = Field(None, description="stored bytes of each number of a sample")
    decoded_mb_per_core: PositiveFloat | None = Field(
        None, description="MB as stored that one processor core makes ready in a second; none needs no work"
    )
    made_from: str | None = Field(None, description="format that it is made from before the training begins")
    any_order: bool = Field(description="samples are read in any order, not only one shard after another")

    @model_validator(mode="after")
    def _one_size(self) -> DataFormat:
        if sum(size is not None for size in (self.bytes_per_token, self.bytes_per_sample, self.bytes_per_number)) > 1:
            raise ValueError("give one of bytes_per_token, bytes_per_sample and bytes_per_number")
        return self


class StorageTier(Row):
    """Something that data are read from, and what one node reads and writes there."""

    place: DataSource | None = Field(None, description="what a plan calls it as a source; none for main memory")
    cache: CacheName | None = Field(None, description="what a plan calls it as a cache")
    disk_kind: str | None = Field(None, description="kind of disk that detection finds")
    read_gbs: PositiveFloat = Field(description="GB/s that a node reads in order")
    any_order_gbs: PositiveFloat = Field(description="GB/s that a node reads in any order, sample by sample")
    write_gbs: PositiveFloat | None = Field(None, description="GB/s that a node writes; none where nothing is written")


class CheckpointFiles(Row):
    """What the checkpoints of one kind of software look like."""

    names: tuple[str, ...] = Field(description="globs of a checkpoint's folder or file")
    holds: tuple[str, ...] = Field((), description="globs of which each must be found in its folder")
    newest: str | None = Field(None, description="file beside it that names the newest complete one")
    unfinished: tuple[str, ...] = Field((), description="globs of what lies beside it while it is written")
