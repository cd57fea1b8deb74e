"""Prices fetched on request: laid over the shipped ones, kept whole or not at all, and never in the way of them."""

from __future__ import annotations

import csv
import gc
import io
import json
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from capacity_tui.engine.catalog import FILE, Catalog, load_catalog
from capacity_tui.engine.cluster import ON_DEMAND, SPOT, chosen_quote
from capacity_tui.engine.errors import CapacityError, MissingPartError, StorageError
from capacity_tui.engine.fleet import refresh_prices
from capacity_tui.engine.fleet.price_list import Fetched, Offered, gpuhunt_feed
from capacity_tui.tui.cli import main

DAY = date(2026, 11, 22)
FEED = [
    Offered("aws", "p5.48xlarge", "us-east-1", 50.0, False, 8),
    Offered("aws", "p5.48xlarge", "us-east-1", 20.0, True, 8),
    Offered("aws", "p5.48xlarge", "eu-north-1", 54.0, False, 8),
    Offered("aws", "m7i.24xlarge", "us-east-1", 4.5, False, 0),
    Offered("azure", "Standard_ND96isr_H100_v5", "eastus", 90.0, False, 8),
    Offered("gcp", "a3-highgpu-8g", "us-central1-a", 80.0, False, 8),
    Offered("gcp", "a3-highgpu-8g", "us-central1-b", 82.0, False, 8),
    Offered("gcp", "a3-highgpu-8g", "us-central1-c", 99.0, True, 8),  # dearer than on demand: no price
    Offered("gcp", "n2-standard-32", "us-central1-a", 9.0, False, 1),  # the host with a card of another kind
    Offered("lambdalabs", "gpu_8x_h100_sxm5", "us-south-1", 30.0, False, 8),
    Offered("aws", "p4d.24xlarge", "us-east-1", float("inf"), False, 8),
    Offered("aws", "p4d.24xlarge", "us-east-1", -1.0, False, 8),
    Offered("nobody", "x", "y", 1.0, False, 1),
]


def refreshed(folder: Path) -> Catalog:
    return refresh_prices(Catalog(folder), lambda: Fetched("feed 1", FEED), DAY).catalog


def usd(catalog: Catalog, name: str, region: str | None = None, payment: str = ON_DEMAND) -> float | None:
    found = chosen_quote(catalog.instances[name], SPOT if payment == SPOT else ON_DEMAND, region, catalog)
    return found and found.usd_per_hour


def test_fetched_prices_count_and_say_their_day_and_source(tmp_path: Path) -> None:
    catalog = refreshed(tmp_path)
    assert usd(catalog, "aws-p5-48xlarge") == 50
    assert usd(catalog, "aws-p5-48xlarge", "us-east-1", SPOT) == 20
    assert usd(catalog, "aws-p5-48xlarge", "eu-north-1") == 54
    assert usd(catalog, "aws-m7i-24xlarge") == 4.5
    assert usd(catalog, "azure-nd96isr-h100-v5") == 90
    assert usd(catalog, "gcp-a3-highgpu-8g") == 81  # of two zones
    assert usd(catalog, "gcp-n2-standard-32") == usd(load_catalog(Path("none")), "gcp-n2-standard-32")
    quote = chosen_quote(catalog.instances["aws-p5-48xlarge"], ON_DEMAND, None, catalog)
    assert quote is not None
    assert (quote.price_date, quote.source, quote.age.is_old, quote.confidence) == ("2026-11-22", "feed 1", False, "B")


def test_a_fetched_spot_price_counts_more_than_an_older_one_of_another_region(tmp_path: Path) -> None:
    shipped = load_catalog(Path("none"))
    row = next(
        row
        for row in shipped.instances.values()
        if row.spot_usd_per_hour and row.spot_region not in (None, row.region) and row.on_demand_usd_per_hour
    )
    assert usd(shipped, row.id, None, SPOT) == row.spot_usd_per_hour
    dearer = [
        Offered(row.provider, row.name, str(row.region), row.spot_usd_per_hour * times, is_spot, row.accelerator_count)
        for times, is_spot in ((1.1, True), (2.0, False))
    ]
    catalog = refresh_prices(Catalog(tmp_path), lambda: Fetched("feed 1", dearer), DAY).catalog
    for region in (None, row.region):
        assert usd(catalog, row.id, region, SPOT) == row.spot_usd_per_hour * 1.1
    assert usd(catalog, row.id, row.spot_region, SPOT) == row.spot_usd_per_hour


def test_what_cannot_be_a_price_is_left_out_and_counted(tmp_path: Path) -> None:
    found = refresh_prices(Catalog(tmp_path), lambda: Fetched("feed 1", FEED), DAY)
    assert (found.dropped, found.instances, found.prices) == (3, 5, 7)
    shipped = load_catalog(Path("none"))
    for name, region, payment in (("gcp-a3-highgpu-8g", None, SPOT), ("aws-p4d-24xlarge", "us-east-1", ON_DEMAND)):
        assert usd(found.catalog, name, region, payment) == usd(shipped, name, region, payment)


def test_the_users_own_price_stands_above_a_fetched_one(tmp_path: Path) -> None:
    (tmp_path / "instances.yaml").write_text("aws-p5-48xlarge: {on_demand_usd_per_hour: 33}\n")
    assert usd(refreshed(tmp_path), "aws-p5-48xlarge") == 33


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"price_date": "x", "source": "s"}', '{"price_date": "2026-11-22", "source": "s", "k": 1}',
             '{"price_date":"2026-11-22","source":"s","instances":{"a":{"r":{"spot_usd_per_hour":-1}}}}', "\x00\xff"],
)  # fmt: skip
def test_a_broken_file_is_told_and_the_shipped_prices_stay(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_bytes(text.encode("latin-1"))
    catalog = Catalog(tmp_path)
    assert usd(catalog, "aws-p5-48xlarge") == 55.04
    assert any(FILE in problem.one_line() for problem in catalog.problems)


def test_what_was_kept_stays_where_a_refresh_fails(tmp_path: Path) -> None:
    refreshed(tmp_path)
    before = (tmp_path / FILE).read_bytes()

    def broken() -> Fetched:
        raise StorageError("no price could be fetched", "refused")

    for feed in (broken, lambda: Fetched("feed 2", [])):
        with pytest.raises(StorageError):
            refresh_prices(Catalog(tmp_path), feed, DAY)
    assert (tmp_path / FILE).read_bytes() == before


@dataclass
class Item:
    """What gpuhunt returns, as far as it is read."""

    provider: str = "aws"
    instance_name: str = "p5.48xlarge"
    location: str = "us-east-1"
    price: object = 51.0
    gpu_count: object = 8
    spot: bool = False


@pytest.fixture
def gpuhunt(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], list[Item]]], None]:
    """Stand in for the package with a catalogue that answers as a function says."""

    def stand_in(query: Callable[[], list[Item]]) -> None:
        class Hunted:
            def __init__(self, **_: object) -> None: ...

            def load(self) -> None: ...

            def query(self) -> list[Item]:
                return query()

        package, version = ModuleType("gpuhunt"), ModuleType("gpuhunt.version")
        package.Catalog = Hunted  # type: ignore[attr-defined]
        version.__version__ = "0.1.34"  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "gpuhunt", package)
        monkeypatch.setitem(sys.modules, "gpuhunt.version", version)

    return stand_in


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_catalog: None) -> Path:
    """The folder of the user's catalogue, for commands."""
    monkeypatch.setenv("CAPACITY_TUI_CONFIG", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path / "catalog"


def test_the_command_fetches_keeps_and_lists(
    own: Path, gpuhunt: Callable[[Callable[[], list[Item]]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    gpuhunt(lambda: [Item(), Item(spot=True, price=21.0), Item(price="free"), Item(gpu_count=None)])
    assert main(("fleet", "prices", "--refresh", "--filter", "p5.48xlarge", "--format", "json")) == 0
    said = capsys.readouterr()
    (row,) = json.loads(said.out)
    assert (row["usd_per_hour"], row["usd_per_device_hour"], row["price_is_old"]) == (51, 51 / 8, False)
    assert "2 prices of 1 instances from gpuhunt 0.1.34" in said.err
    assert (own / FILE).is_file()


def test_errors_of_the_network_are_one_line(
    own: Path, gpuhunt: Callable[[Callable[[], list[Item]]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable() -> list[Item]:
        raise RuntimeError("Failed to load catalogs of all providers") from OSError("Name or service\nnot known")

    gpuhunt(unreachable)
    assert main(("fleet", "prices", "--refresh")) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "Name or service not known" in said.err
    assert not (own / FILE).exists()


def test_without_the_package_its_name_is_told(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    assert main(("fleet", "prices", "--refresh")) == MissingPartError.exit_code == 3
    assert "gpuhunt<" in capsys.readouterr().err
    assert not own.exists()


def test_the_real_package_fails_in_one_line_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gpuhunt", reason="the extra prices is not installed")
    monkeypatch.setenv("GPUHUNT_CATALOG_URL", "http://127.0.0.1:9/nothing")
    with pytest.raises(CapacityError, match="no price could be fetched"):
        gpuhunt_feed()


CSV = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor\n"
    "p5.48xlarge,us-east-1,51.0,192,2048.0,8,H100,80.0,False,,nvidia\n"
)
HEADER = CSV.splitlines(keepends=True)[0]


def zipped(name: str, text: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(f"{name}.csv", text)
    return content.getvalue()


ANSWERS = {
    "aws": zipped("aws", CSV),
    "azure": b"no zip",
    "gcp": zipped("gcp", CSV * 99)[:200],
    "oci": zipped("oci", HEADER),
    "nebius": zipped("other", CSV),
}
"""What a server sends for each provider; 404 for all others."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """A server from which the real package fetches what stands in a mapping of providers."""
    pytest.importorskip("gpuhunt", reason="the extra prices is not installed")
    answers = dict(ANSWERS)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, provider, *_, last = self.path.split("/")
            content = answers.get(provider)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(b"" if content is None else b"1" if last == "version" else content)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        monkeypatch.setenv("GPUHUNT_CATALOG_URL", f"http://127.0.0.1:{serving.server_port}")
        yield answers
        serving.shutdown()
    with warnings.catch_warnings(action="ignore"):
        gc.collect()  # gpuhunt leaves open what answered with an error


def test_providers_that_fail_are_named_with_the_reason_and_the_others_count(
    own: Path, server: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("fleet", "prices", "--refresh", "--filter", "p5.48xlarge", "--format", "json")) == 0
    said = capsys.readouterr()
    (row,) = json.loads(said.out)
    assert (row["usd_per_hour"], row["price_is_old"]) == (51, False)
    lines = {line.partition("no prices of ")[2] for line in said.err.splitlines() if "no prices of" in line}
    for names, reason in (
        ("azure, gcp:", "not a zip"),
        ("verda, lambdalabs, runpod, cloudrift:", "404"),
        ("nebius:", "nebius.csv"),
        ("oci:", "empty"),
    ):
        assert any(line.startswith(names) and reason in line for line in lines), (names, said.err)
    assert len(lines) == 4
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "answer",
    [None, b"no zip", zipped("aws", CSV)[:90], zipped("aws", HEADER)],
    ids=["none", "no zip", "cut off", "no rows"],  # an archive holds the time, so it is no name of a test
)
def test_where_no_provider_has_a_price_nothing_is_kept(
    own: Path, server: dict[str, bytes], capsys: pytest.CaptureFixture[str], answer: bytes | None
) -> None:
    server.clear()
    if answer is not None:
        server["aws"] = answer
    assert main(("fleet", "prices", "--refresh")) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "no price" in said.err
    assert not (own / FILE).exists()


def test_prices_are_listed_by_instance_and_by_device(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("fleet", "prices", "--filter", "p5.48xlarge")) == 0
    said = capsys.readouterr()
    assert all(text in said.out for text in ("$55.04*", "$6.88*", "$32.25*?", "2026-07-20 old"))
    assert "* seen over 90 days ago" in said.err
    assert "? from memory" in said.err
    assert main(("fleet", "prices", "--filter", "p5.48xlarge", "--format", "csv", "--region", "europe")) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {line["region"] for line in lines} == {"eu-north-1", "eu-west-2"}
    assert all(float(line["usd_per_device_hour"]) * 8 == pytest.approx(float(line["usd_per_hour"])) for line in lines)


def test_every_listed_price_is_that_of_the_data(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("fleet", "prices", "--format", "json")) == 0
    shipped = load_catalog(Path("none"))
    rows = json.loads(capsys.readouterr().out)
    assert [row["instance"] for row in rows] == list(shipped.instances)
    for row in rows:
        kept = shipped.instances[row["instance"]]
        assert row["usd_per_hour"] == kept.on_demand_usd_per_hour
        assert kept.spot_usd_per_hour in (row["usd_per_hour_spot"], None)
        assert all(price["source"] for price in row["prices"])


@pytest.mark.parametrize("arguments", [("--region", "mars"), ("--format", "xml"), ("--filter",)])
def test_bad_input_is_one_line_and_no_traceback(
    own: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert main(("fleet", "prices", *arguments)) == 2
    assert "Traceback" not in capsys.readouterr().err
