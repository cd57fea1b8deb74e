"""The data of a real plan as a corpus of patterns, and what it stores, as the screen shows them."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer
from capacity_tui.engine.storage import storage_plan
from capacity_tui.engine.units import format_bytes
from capacity_tui.tui.views.scale.corpus_question import PlanCorpus
from capacity_tui.tui.views.scale.present import stored_rows

LLAMA = {"name": "llama-3.1-8b"}


def corpus(**plan: object) -> PlanCorpus:
    data = {"model": LLAMA, "hardware": {"name": "h100-sxm-80gb"}, **plan}
    return PlanCorpus(plan_from_data(data), None, load_catalog())


def test_the_corpus_is_the_data_of_the_plan_and_the_documents_size_where_it_says_nothing() -> None:
    chosen = corpus(training={"tokens": 4.096e9, "seq_len": 4096}).chosen()
    assert (chosen["samples"].value, chosen["tokens"].value) == (1e6, 4096)
    assert chosen["samples"].reason == "tokens of the plan"
    served = corpus(task="infer").chosen()
    assert (served["samples"].value, served["tokens"].value) == (100e6, 500)
    assert served["samples"].reason.startswith("the plan does not say")


def test_levels_are_the_engines_and_the_command_asks_for_the_same() -> None:
    given = corpus(task="infer").edited("dedup", "60%").edited("samples", "100M")
    found = given.patterns()
    assert [level.cells[0] for level in found.levels] == ["node0", "node1", "node2", "node3", "all"]
    assert [level.cells[3] for level in found.levels] == ["60 %", "42 %", "29.4 %", "20.6 %", ""]
    assert sum(level.share for level in found.levels[:4]) == pytest.approx(1.0)
    assert given.command() == "capacity-tui storage estimate --samples 100000000 --tokens 500 --dedup 0.6"
    here = found.growth.here
    assert here is not None
    main = dict(found.growth.curves[-1].points)
    assert here[1] == pytest.approx(main[1e8])
    assert len(found.growth.curves[-1].points) == 9
    ranks, counts = zip(*found.levels[0].frequencies.curves[0].points, strict=True)
    assert list(counts) == sorted(counts, reverse=True)
    assert ranks[0] == 1


def test_a_field_goes_back_to_the_plans_and_what_makes_no_sense_is_refused() -> None:
    given = corpus(training={"samples": 5000}).edited("samples", "2k")
    assert next(field.text for field in given.fields() if field.key == "samples") == "2 000"
    for text in ("", "auto"):
        assert given.edited("samples", text).chosen()["samples"].value == 5000
    for key, text in (("levels", "99"), ("chunk", "2.5"), ("alpha", "steep"), ("dedup", "-5%")):
        with pytest.raises(CapacityError):
            given.edited(key, text)


def test_what_a_training_stores_is_what_the_engine_says_and_serving_stores_nothing() -> None:
    plan = corpus(training={"tokens": 1e9, "micro_batch": 1}, task="finetune").plan
    found, catalog = answer(plan, None), load_catalog()
    rows = {row.key: row for row in stored_rows(None, found, catalog)}
    kept = storage_plan(found, None, catalog)
    assert rows["checkpoint"].text == format_bytes(kept.checkpoints.bytes)
    assert rows["read.local"].share == pytest.approx(kept.sources[0].needed / kept.sources[0].bandwidth)
    assert rows["waits"].text == "never"
    assert {"data", "saving", "stall", "disk", "memory", "read.bucket"} <= rows.keys()
    assert stored_rows(None, answer(corpus(task="infer").plan, None), catalog) == ()
