"""Keys of the older plan form: in files, at ``--set``, and what is said where they leave the job open."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan.files import apply_settings, plan_from_data
from capacity_tui.tui.cli import main

MODELS = {
    "transformer": {"model": {"name": "gpt2-small"}},
    "network": {"model": {"name": "mlp"}},
    "classical": {"model": {"name": "svm_rbf"}},
    "served": {"task": "infer", "model": {"name": "gpt2-small"}},
}


@pytest.mark.parametrize(
    ("model", "setting", "path", "value"),
    [
        ("transformer", "model.optimization=adam", "training.optimizer", "adamw"),
        ("transformer", "training.optimizer=Adam", "training.optimizer", "adamw"),
        ("transformer", "model.spec.n_tokens=2B", "training.tokens", 2e9),
        ("transformer", "model.spec.seq_len=4k", "training.seq_len", 4096),
        ("served", "model.spec.seq_len=4k", "inference.prompt_tokens", 4096),
        ("served", "model.spec.batch_size=8", "inference.batch", 8),
        ("network", "model.spec.batch_size=64", "training.micro_batch", 64),
        ("network", "model.learning_rate=0.01", "training.learning_rate", 0.01),
        ("network", "hardware.parallel_devices=4", "hardware.devices", 4),
        ("classical", "model.spec.n=5000", "model.spec.n", 5000),
    ],
)
def test_settings_take_the_keys_that_files_take(model: str, setting: str, path: str, value: object) -> None:
    plan = apply_settings(plan_from_data(MODELS[model]), [setting]).plan
    assert plan.value(path) == value


def test_the_model_that_is_set_beside_decides() -> None:
    plan = apply_settings(plan_from_data(MODELS["transformer"]), ["model.spec.n=5000", "model.name=svm_rbf"]).plan
    assert (plan.model.spec["n"], plan.training.samples) == (5000, None)
    with pytest.raises(PlanError):
        apply_settings(plan, ["model=5"])


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (
            "model: {name: gpt2-small}\ntraining:\n  epochs: 1\n",
            "3: training.epochs: changes nothing here: needs samples",
        ),
        ("model: {name: mlp}\ntraining:\n  epochs: 3\n", "3: training.epochs: changes nothing here: needs samples"),
        ("model:\n  name: gpt2-small\n  spec:\n    n: 500\n", "4: model.spec.n: changes nothing here: needs epochs"),
        ("model:\n  name: gpt2-small\n  spec: {n: 500, epochs: 2}\n", ""),
        (
            "task: infer\nmodel: {name: resnet-50}\ninference: {adapters: 4}\n",
            "3: inference.adapters: changes nothing here: is of other kinds of models",
        ),
    ],
)
def test_what_has_no_effect_is_remarked_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plan: str, says: str
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(plan + "hardware: {name: rtx-4090}\n")
    assert main(["validate", str(path)]) == 0
    said = capsys.readouterr().err
    assert said == "" if not says else f"{path}:{says}" in said
    if says:
        assert main(["plan", str(path), "--format", "markdown"]) == 0
        assert "changes nothing here" in capsys.readouterr().out
