"""TRL with PEFT: a script and its settings. Names as in TRL 1.16, PEFT 0.21, Transformers 5 and bitsandbytes 0.50."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from capacity_tui.engine.present.frameworks import trainer
from capacity_tui.engine.present.frameworks.exports import as_yaml, limits
from capacity_tui.engine.present.frameworks.job import Job, kernel_remarks
from capacity_tui.engine.present.frameworks.low_rank import LowRank, adapter_remarks, learning_rate
from capacity_tui.engine.printable import printable

VERSION = "TRL 1.16, PEFT 0.21 and Transformers 5"
SCRIPT = "train.py"
SETTINGS = "sft_config.yaml"
_TYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16"}


def trl_files(job: Job, adapter: LowRank, split: int = 1) -> Iterator[tuple[str, str]]:
    """Yield the script that fine-tunes the plan, and the settings it reads.

    Args:
        split: the devices over which the plan splits a layer, which the script does not do.
    """
    yield SCRIPT, _script(job, adapter, split)
    yield SETTINGS, _settings(job)


def _settings(job: Job) -> str:
    """Return what ``HfArgumentParser.parse_yaml_file`` reads as ``SFTConfig``."""
    training = job.training
    data = trainer.settings(job) | {
        "learning_rate": learning_rate(job),
        "max_length": int(training.seq_len),
        # The plan counts every sequence as full; documents end inside them only where it says so.
        "packing": True,
        "packing_strategy": "wrapped" if training.document_tokens is None else "bfd",
        "activation_offloading": training.activation_offload != "none",
    }
    return as_yaml([f"Written for {VERSION}: settings of {SCRIPT}, SFTConfig."], list(_settings_remarks(job)), data)


def _settings_remarks(job: Job) -> Iterator[str]:
    yield from trainer.loop_remarks(job)
    if job.training.document_tokens is not None and trainer.attention_kernel(job) in {"sdpa", "eager"}:
        yield "documents: TRL keeps packed ones apart only with flash attention"


def _script(job: Job, adapter: LowRank, split: int) -> str:
    heading = [
        f'"""Fine-tune {_in_docstring(job.model)} with {_method(adapter)}. Written for {VERSION}.',
        "",
        f"    accelerate launch --config_file {trainer.ACCELERATE_FILE} {SCRIPT} DATA",
        "",
        "DATA: a file of JSON lines or a data set of the hub with a column text, messages, or prompt and completion.",
        '"""',
    ]
    remarks = [*adapter_remarks(job, adapter), *kernel_remarks(job)]
    if split > 1:
        remarks.append(f"tensor parallel {split}: this script splits no layer, FSDP spreads the model in its place")
    return "\n".join(heading) + "\n\n" + limits(remarks) + "\n" + "\n".join(_body(job, adapter)) + "\n"


def _body(job: Job, adapter: LowRank) -> Iterator[str]:
    packed = adapter.bits is not None
    yield from _imports(job, packed)
    yield ""
    if job.on_hub:
        yield f"MODEL = {_text(job.model)}"
    else:
        yield 'MODEL = os.environ["MODEL"]  # folder of the checkpoint'
    yield f'SETTINGS = Path(__file__).with_name("{SETTINGS}")'
    yield ""
    yield "(settings,) = HfArgumentParser(SFTConfig).parse_yaml_file(SETTINGS)"
    yield "data = sys.argv[1]"
    yield 'source = {"path": "json", "data_files": data} if data.endswith((".json", ".jsonl")) else {"path": data}'
    yield 'rows = load_dataset(**source, split="train")'
    if packed:
        yield from _call("packing = BitsAndBytesConfig", _packing(job, adapter))
    yield from _call("model = AutoModelForCausalLM.from_pretrained", _model_arguments(job, adapter))
    yield from _call("adapter = LoraConfig", _adapter_arguments(adapter))
    yield "trainer = SFTTrainer("
    yield "    model=model,"
    yield "    args=settings,"
    yield "    train_dataset=rows,"
    yield "    processing_class=AutoTokenizer.from_pretrained(MODEL),"
    yield "    peft_config=adapter,"
    yield ")"
    yield "trainer.train()"
    yield "trainer.save_model()"


def _imports(job: Job, packed: bool) -> Iterator[str]:
    if not job.on_hub:
        yield "import os"
    yield "import sys"
    yield "from pathlib import Path"
    yield ""
    yield "import torch"
    yield "from datasets import load_dataset"
    yield "from peft import LoraConfig"
    names = ["AutoModelForCausalLM", "AutoTokenizer", *(["BitsAndBytesConfig"] if packed else []), "HfArgumentParser"]
    yield f"from transformers import {', '.join(names)}"
    yield "from trl import SFTConfig, SFTTrainer"


def _model_arguments(job: Job, adapter: LowRank) -> Iterator[str]:
    yield "MODEL"
    yield f"dtype={_type(job)}"
    yield f"attn_implementation={_text(trainer.attention_kernel(job))}"
    if adapter.bits is not None:
        yield "quantization_config=packing"


def _packing(job: Job, adapter: LowRank) -> Iterator[str]:
    """Yield the arguments that say how bitsandbytes packs the base."""
    if adapter.bits != 4:
        yield "load_in_8bit=True"
        return
    computed = _type(job)
    yield "load_in_4bit=True"
    yield f"bnb_4bit_quant_type={_text(adapter.base)}"
    yield "bnb_4bit_use_double_quant=True"
    yield f"bnb_4bit_compute_dtype={computed}"
    if trainer.backend(job) in {"FSDP", "DEEPSPEED"}:
        # Sharding moves weights in the type they are stored in.
        yield f"bnb_4bit_quant_storage={computed}"


def _adapter_arguments(adapter: LowRank) -> Iterator[str]:
    yield f"r={adapter.rank}"
    yield f"lora_alpha={adapter.alpha}"
    yield "lora_dropout=0.0"
    yield f"target_modules={_text(list(adapter.names) or 'all-linear')}"
    if adapter.is_weighted:
        yield "use_dora=True"
    if adapter.whole:
        yield f"modules_to_save={_text(list(adapter.whole))}"
    yield 'task_type="CAUSAL_LM"'


def _type(job: Job) -> str:
    return f"torch.{_TYPES.get(job.precision, 'bfloat16')}"


def _text(value: object) -> str:
    """Return words as Python writes them, in double quotes."""
    return json.dumps(value)


def _call(what: str, arguments: Iterator[str]) -> Sequence[str]:
    return (f"{what}(", *(f"    {argument}," for argument in arguments), ")")


def _method(adapter: LowRank) -> str:
    named = "DoRA" if adapter.is_weighted else "LoRA"
    return f"{named} on a base in {adapter.base}" if adapter.base else named


def _in_docstring(text: str) -> str:
    return printable(text).replace("\\", "/").replace('"', "'")
