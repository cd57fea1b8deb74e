"""What the catalogues know, listed: filtered, in the room there is, and nothing unknown as zero."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("place")


@pytest.mark.parametrize("command", ["models", "hardware", "instances"])
def test_catalogues(run, command: str) -> None:
    rows = json.loads(run(command, "--format", "json").out)
    first = rows[0]["id"]
    assert json.loads(run(command, "--details", first, "--format", "json").out) == rows[0]
    assert first in run(command, "--list").out
    assert first in run(command, "--details", first).out
    nothing = run(command, "--filter", "no such thing")
    assert nothing.code == 0
    assert "nothing matches" in nothing.err


def test_catalogue_filter_wants_every_word(run) -> None:
    ids = [row["id"] for row in json.loads(run("hardware", "--filter", "h100 sxm", "--format", "json").out)]
    assert ids == [row["id"] for row in json.loads(run("hardware", "h100", "sxm", "--format", "json").out)]
    assert ids == ["h100-sxm-80gb"]


@pytest.mark.parametrize("command", ["instances", "hardware", "models"])
@pytest.mark.parametrize("width", [100, 80, 60])
def test_lists_lose_whole_columns_where_room_is_short(run, monkeypatch, command: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(command, "--filter", "llama" if command == "models" else "b").out.splitlines()
    assert max(map(len, lines)) <= width
    heads, rows = lines[0], [line for line in lines[2:] if line and not line.startswith("no room for")]
    assert heads.split()[0] == "id"
    assert all(not row.startswith(" ") for row in rows), "a cell was folded"
    kept = {"instances": ("memory", "on demand/h"), "hardware": ("memory", "16-bit peak"), "models": ("parameters",)}
    assert all(head in heads for head in kept[command])
    if width == 60:
        assert any(line.startswith("no room for: ") for line in lines)


def test_a_fraction_of_a_device_is_listed_with_its_own_memory(run) -> None:
    line = next(line for line in run("instances", "--filter", "g6f.large").out.splitlines() if "g6f-large" in line)
    assert line.split()[1:3] == ["3", "GB"]


def test_instances_are_picked_by_provider_devices_price_and_region() -> None:
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.tui.engine_view import choices

    offers = {choice.id: choice for choice in choices("accelerator", load_catalog(), None)}
    offer = offers["aws-p5-48xlarge"]
    told = "us-east-1 · 8 x h100-sxm-80gb · AWS p5.48xlarge · price over 90 days old"
    assert (offer.detail, offer.price) == (told, "$55.04/h")


def test_an_unknown_peak_is_not_zero(run) -> None:
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.tui.engine_view import choices

    details = {choice.id: choice.detail for choice in choices("accelerator", load_catalog(), None)}
    assert details["mi308x"].endswith("n/a")
    assert not any(" 0 TFLOP/s" in detail for detail in details.values())
    assert "n/a" in run("hardware", "--filter", "mi308x").out


def test_power_without_a_limit_is_not_silent(run) -> None:
    known = run("plan", "--model", "mlp", "--gpu", "M2_Ultra", "--set", "hardware.spec.tdp_w=100")
    unknown = run("plan", "--model", "mlp", "--gpu", "M2_Ultra")
    assert "power limit not known" in unknown.out
    assert "power limit not known" not in known.out
