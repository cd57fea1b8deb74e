"""Peak memory of published training runs as another program predicts it, beside which docs/accuracy.md puts our own.

The other program needs an environment of its own, so that this has two steps:

    uv run python benchmarks/rivals.py rows > rows.json
    uv run --isolated --no-project --with llm-analysis==0.2.2 python benchmarks/rivals.py predict rows.json

The second writes ``profiles/fits/rivals.csv``; ``rate rows.json`` in its place prints how many runs the other program
estimates a second, to be set beside ``plans_per_second.py`` on the same machine. llm-analysis is told sizes, layout,
sharding, recomputation and batch of every dense run without adapters; recomputation it has no word for counts as none.
Its times need a share of the peak that whoever asks must know, and so are none to compare.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import importlib.metadata
import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

NAME = "llm-analysis"
OUTPUT = Path(__file__).parents[1] / "profiles" / "fits" / "rivals.csv"
RECOMPUTED = {"full": 2, "selective": 1}
AMPLE_GB = 10**6
TIMED_SECONDS = 5.0


def rows() -> Iterator[dict[str, Any]]:
    """Yield the published runs that the other program has words for."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.errors import CapacityError
    from capacity_tui.engine.runs.accuracy.predictions import answered
    from capacity_tui.engine.runs.accuracy.scoring import scored_measurements

    catalog = load_catalog()
    for row in scored_measurements("train_memory"):
        try:
            resolved = answered(row, catalog).resolved
        except CapacityError:
            continue
        shape, plan = resolved.shape, resolved.plan
        if shape is None or float(shape.experts) > 0 or plan.training.adapter is not None:
            continue
        yield {
            "id": row.id,
            "layers": int(shape.layers), "hidden": int(shape.hidden), "heads": int(shape.heads),
            "kv_heads": int(shape.kv_heads), "ffn": int(shape.ffn), "vocab": int(shape.vocab),
            "gated": bool(shape.gated), "seq": plan.training.seq_len, "micro_batch": plan.training.micro_batch,
            "global_batch": plan.training.global_batch, "recomputed": str(plan.training.checkpointing),
            "tp": plan.parallelism.tp, "pp": plan.parallelism.pp, "dp": plan.parallelism.dp,
            "zero": plan.parallelism.zero, "sequence_parallel": bool(plan.parallelism.sequence_parallel),
        }  # fmt: skip


def predicted(row: Mapping[str, Any]) -> float:
    """Return the bytes that the other program predicts for a run."""
    from llm_analysis import analysis, config

    logging.disable(logging.WARNING)
    model = config.ModelConfig(
        name=row["id"], num_layers=row["layers"], n_head=row["heads"], hidden_dim=row["hidden"],
        vocab_size=row["vocab"], max_seq_len=row["seq"], num_key_value_heads=row["kv_heads"],
        ffn_embed_dim=row["ffn"], expansion_ratio=row["ffn"] / row["hidden"],
    )  # fmt: skip
    device = config.GPUConfig(row["id"], AMPLE_GB, 2000, 300, 1e-5, 300)
    layout = config.ParallelismConfig(
        row["tp"], row["pp"], row["dp"], sp_size=row["tp"] if row["sequence_parallel"] else 1
    )
    found = analysis.LLMAnalysis(model, device, parallelism_config=layout, flops_efficiency=0.5).training(
        batch_size_per_gpu=row["micro_batch"],
        global_batch_size=row["global_batch"],
        seq_len=row["seq"],
        activation_recomputation=analysis.ActivationRecomputation(RECOMPUTED.get(row["recomputed"], 0)),
        ds_zero=analysis.DSZeRO(row["zero"]),
        mlp_gated_linear_units=row["gated"],
    )
    parts = ("weight_memory_per_gpu", "gradient_memory_per_gpu", "optimizer_state_memory_per_gpu",
             "activation_memory_per_gpu")  # fmt: skip
    return float(sum(found[part] for part in parts))


def rate(found: list[dict[str, Any]]) -> float:
    """Return how many runs the other program estimates in a second of the processor; what it refuses counts too."""
    started, count = time.process_time(), 0
    while (taken := time.process_time() - started) < TIMED_SECONDS:
        with contextlib.suppress(AssertionError, ZeroDivisionError):
            predicted(found[count % len(found)])
        count += 1
    return count / taken


def main() -> None:
    """Run the step that the command line asks for."""
    if sys.argv[1] == "rows":
        json.dump(list(rows()), sys.stdout)
        return
    if sys.argv[1] == "rate":
        found = json.loads(Path(sys.argv[2]).read_text("utf-8"))
        print(f"{NAME} {importlib.metadata.version(NAME)}: {rate(found):,.0f} a second")
        return
    today, version = dt.datetime.now(tz=dt.UTC).date(), importlib.metadata.version(NAME)
    with OUTPUT.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("rival", "version", "date", "kind", "id", "predicted"))
        for row in json.loads(Path(sys.argv[2]).read_text("utf-8")):
            try:
                table.writerow((NAME, version, today, "train_memory", row["id"], f"{predicted(row):.5g}"))
            except (AssertionError, ZeroDivisionError) as error:
                print(f"{row['id']}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
