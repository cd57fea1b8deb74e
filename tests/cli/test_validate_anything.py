"""Whatever a file holds, ``validate`` says yes, or one line a fault."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.printable import printable
from capacity_tui.tui.cli import main

numbers = (True, 0, 1, 3, -1, 64, 10**7, 10**30, 0.5, 1e18, float("nan"), float("inf"))
words = ("auto", "none", "bf16", "80GB", "8k", "x" * 300, "\x1b[31mred", "", "2026-01-01", "q4_k_m")
values = st.sampled_from((None, *numbers, *words)) | st.sampled_from(([], [0], [1, "x"], {}, {"a": 1}))


def sections(**fields: tuple[str, ...]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries(
        {}, optional={name: st.dictionaries(st.sampled_from(keys), values, max_size=3) for name, keys in fields.items()}
    )


plans = st.builds(
    lambda model, spec, hardware, rest: {"model": {"name": model, "spec": spec}, "hardware": hardware, **rest},
    st.sampled_from(["gpt2-small", "mixtral-8x7b", "deepseek-v3", "mlp", "svm_rbf", "transformer_decoder"]),
    st.dictionaries(
        st.sampled_from(["layers", "hidden", "heads", "experts", "vocab", "n", "batch_size"]), values, max_size=2
    ),
    st.builds(
        lambda name, more: {**more, "name": name},
        st.sampled_from(["rtx-4090", "h100", "CPU_8C_3.5Ghz_baseline", "TPU_v4_pod", "P5", "no-such-thing"]),
        st.dictionaries(st.sampled_from(["devices", "per_node", "interconnect", "spec"]), values, max_size=2),
    ),
    sections(
        training=("seq_len", "micro_batch", "global_batch", "tokens", "precision", "checkpointing", "adapter"),
        inference=("prompt_tokens", "batch", "weights", "engine"),
        parallelism=("dp", "tp", "pp", "ep", "zero", "shard"),
        pricing=("usd_per_hour", "spot"),
        scalability=("enabled", "device_counts"),
    ),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans") / "plan.yaml"


@given(st.one_of(plans.map(yaml.safe_dump), st.text(max_size=60), plans.map(lambda plan: yaml.safe_dump(plan)[:-9])))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_yes_or_one_line_a_fault(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["validate", str(path)])
    if code == 0:
        assert out.getvalue() == f"{path}: valid\n"
        assert all(": changes nothing here: " in line for line in err.getvalue().splitlines())
    else:
        assert code == 2, err.getvalue()
        for line in err.getvalue().removesuffix("\n").split("\n"):
            assert line.startswith(f"capacity-tui: {path}")
            assert printable(line) == line


def test_an_unknown_model_hides_no_other_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "model:\n  name: mlpp\n  spec: {layrs: 4, d_in: 100, precision: fp12}\n  optimization: adamx\n"
        "training: {batch: 4}\nhardware: {name: h100}\n"
    )
    assert main(["validate", str(file)]) == 2
    told = capsys.readouterr().err
    assert all(word in told for word in ("mlpp", "layrs", "fp12", "adamx", "training.batch"))
