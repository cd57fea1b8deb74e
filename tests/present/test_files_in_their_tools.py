"""Files for other tools, read by these tools' own parsers where they are installed."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import yaml

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.frameworks import framework_files

ON_THIS_PROCESSOR = {"bf16": False, "fp16": False, "tf32": None, "use_cpu": True}
"""What a machine without a GPU cannot be asked for when a file is read."""


def written(**training: object) -> dict[str, str]:
    data = {
        "model": {"name": "llama-3.1-8b"},
        "training": {"micro_batch": 2, "global_batch": 64, "steps": 100, **training},
        "hardware": {"name": "h100-sxm-80gb", "devices": 8, "per_node": 8},
    }
    return dict(framework_files(resolve_plan(plan_from_data(data), load_catalog()), load_catalog()))


@pytest.mark.parametrize("framework", ["transformers", "fsdp", "ddp"])
def test_transformers_reads_its_arguments_without_a_warning(framework: str) -> None:
    transformers = pytest.importorskip("transformers", reason="Transformers is not installed")
    arguments = yaml.safe_load(written(framework=framework)["training_arguments.yaml"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        [parsed] = transformers.HfArgumentParser(transformers.TrainingArguments).parse_dict(
            {**arguments, **ON_THIS_PROCESSOR}
        )
    assert parsed.per_device_train_batch_size == 2


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_trl_reads_its_configuration_without_a_warning(method: str) -> None:
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    transformers = pytest.importorskip("transformers", reason="Transformers is not installed")
    arguments = yaml.safe_load(written(method=method)["sft_config.yaml"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        [parsed] = transformers.HfArgumentParser(trl.SFTConfig).parse_dict({**arguments, **ON_THIS_PROCESSOR})
    assert parsed.per_device_train_batch_size == 2


@pytest.mark.parametrize("framework", ["transformers", "fsdp", "deepspeed"])
def test_accelerate_loads_its_configuration(framework: str, tmp_path: Path) -> None:
    arguments = pytest.importorskip("accelerate.commands.config.config_args", reason="Accelerate is not installed")
    path = tmp_path / "accelerate.yaml"
    path.write_text(written(framework=framework)["accelerate.yaml"])
    assert arguments.load_config_from_file(str(path)).num_processes == 8
