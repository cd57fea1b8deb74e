"""Images of containers: what a file makes one start, alone or for a service that is built as it."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.plan.imports import import_plan

_IMAGE = """# syntax=docker/dockerfile:1
FROM {image}
ENV HF_HOME=/models \\
    # where models lie
    {variables}
RUN pip install hf_transfer
EXPOSE 8000
{started}
"""


@pytest.mark.parametrize(
    ("image", "variables", "started", "longest"),
    [
        (
            "vllm/vllm-openai:v0.8.5",
            "A=1",
            'ENTRYPOINT ["python3", "-m", "vllm.entrypoints.openai.api_server"]\n'
            'CMD ["--model", "Qwen/Qwen3-8B", \\\n  "--max-model-len", "4096"]',
            4096,
        ),
        ("python:3.12", "MODEL=Qwen/Qwen3-8B", "CMD vllm serve $MODEL --max-model-len 4096", 4096),
        ("ghcr.io/huggingface/text-generation-inference:2.4", "MODEL_ID=Qwen/Qwen3-8B MAX_TOTAL_TOKENS=4096", "", 4096),
    ],
)
def test_what_an_image_is_made_to_start_is_read(alone, image: str, variables: str, started: str, longest: int) -> None:
    imported = alone("Dockerfile", _IMAGE.format(image=image, variables=variables, started=started))
    plan = imported.plan
    assert (plan.model.name, plan.inference.prompt_tokens + plan.inference.output_tokens) == ("qwen3-8b", longest)


_BUILT = (
    "services:\n  llm:\n    build: {build}\n    image: own\n    environment: {{MODEL: Qwen/Qwen3-8B, LENGTH: 16384}}\n"
)
_STARTS = '#!/bin/bash\nexec vllm serve "${MODEL:?not set}" --max-model-len "${LENGTH:-2048}"\n'


@pytest.mark.parametrize(
    ("build", "image"), [(".", "Dockerfile"), ("{context: ., dockerfile: gpu.Dockerfile}", "gpu.Dockerfile")]
)
def test_what_an_image_starts_that_a_service_is_built_as_is_read_once(tmp_path: Path, build: str, image: str) -> None:
    (tmp_path / "compose.yaml").write_text(_BUILT.format(build=build))
    (tmp_path / image).write_text('FROM python:3.12\nCOPY start.sh /app/start.sh\nENTRYPOINT ["/app/start.sh"]\n')
    (tmp_path / "start.sh").write_text(_STARTS)
    imported = import_plan([str(tmp_path)], {"hardware.name": "h100-sxm-80gb", "hardware.devices": 1})
    plan = imported.plan
    assert (plan.model.name, plan.inference.prompt_tokens + plan.inference.output_tokens) == ("qwen3-8b", 16384)
    assert [Path(reading.file).name for reading in imported.readings] == ["compose.yaml"]
