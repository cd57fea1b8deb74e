"""Columns of the table: sorted by a quantity, and what keys do while a pinned one is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fake_document import FakeDocument
from flow import press, settle, shown

from capacity_tui.tui.app import CapacityApp

MakeApp = Callable[..., CapacityApp]


async def test_advice_and_limit_are_of_the_plan_also_while_a_pinned_one_is_chosen(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "P", "down", "+", "+")
        while not app.session.store.column.is_pinned:
            await press(pilot, "c")
        assert "Shorten the sequence" in shown(pilot, "advice")
        assert "on conservative" in str(app.screen.query_one("#advice").border_subtitle)
        await press(pilot, "down", "M")
        assert app.session.store.document.get("training.micro_batch") == "1"


async def test_columns_are_sorted_by_the_row_under_the_cursor(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        listed = shown(pilot, "plans").splitlines()[0].split()
        await press(pilot, "3", "j", "j", "s")
        assert shown(pilot, "plans").splitlines()[0].split() == listed[::-1]
        assert "sorted by time" in shown(pilot, "note")
        await press(pilot, "2", "down", "+")
        assert shown(pilot, "plans").splitlines()[0].split() == listed[::-1]
        assert "w saves" not in shown(pilot, "note")
        await press(pilot, "s")
        assert shown(pilot, "plans").splitlines()[0].split() == listed
        assert "w saves" in shown(pilot, "note")


async def test_a_long_name_of_a_pinned_plan_stands_apart_from_the_name_before(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pinned(document: FakeDocument, mode: str) -> FakeDocument:
        column = replace(document.column(mode), mode="no grad checkpointing", is_pinned=True)
        return replace(document, beside=(*document.beside, (column.mode, column)))

    monkeypatch.setattr(FakeDocument, "pinned", pinned)
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "P")
        assert " no grad" in shown(pilot, "plans").splitlines()[0]
