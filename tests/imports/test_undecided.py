"""What only starting a script decides is said; what it decides itself is read as it does."""

from __future__ import annotations

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.imports import import_plan
from capacity_tui.engine.plan.imports.scripts.shell import read_script

MADE = "from transformers import Trainer, TrainingArguments, AutoModelForCausalLM, BitsAndBytesConfig\n"
LOADED = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n"
ENGINE = """\
from vllm import LLM, SamplingParams
class Server:
    def __init__(self, name="facebook/opt-125m", tp=1):
        self.engine = LLM(model=name, tensor_parallel_size=tp)
    def ask(self, texts, tokens=16):
        return self.engine.generate(texts, SamplingParams(max_tokens=tokens))
"""


def said_of(imported) -> dict[str, str]:
    """Return what is remarked on, by the name that it is about."""
    return {str(one.place.field): one.why for reading in imported.readings for one in reading.unmodelled}


@pytest.mark.parametrize(
    "start",
    [
        "server = Server('Qwen/Qwen2.5-32B-Instruct', tp=4)\nserver.ask([], tokens=300)\n",
        "application = Server.options(num_replicas=1).bind(name='Qwen/Qwen2.5-32B-Instruct', tp=4)\n",
        "actor = Server.remote('Qwen/Qwen2.5-32B-Instruct', tp=4)\n",
        "def main(name='Qwen/Qwen2.5-32B-Instruct'):\n    Server(name, tp=4)\nmain()\n",
    ],
)
def test_a_class_has_the_arguments_that_it_is_made_with(alone, start: str) -> None:
    plan = alone("serve.py", ENGINE + start).plan
    assert plan.value("parallelism.tp") == 4
    assert "32b" in str(plan.value("model.name"))
    assert plan.value("inference.output_tokens") == (300 if "300" in start else 16)


def test_a_method_of_another_object_is_not_one_of_the_script(alone) -> None:
    text = f"{ENGINE}other.ask([], tokens=300)\nserver = Server('Qwen/Qwen2.5-7B-Instruct')\n"
    assert alone("serve.py", text).plan.value("inference.output_tokens") == 16


def test_a_mapping_is_as_where_the_script_calls_the_function_that_reads_it(alone) -> None:
    train = "def train():\n    arguments = TrainingArguments('x', per_device_train_batch_size=S['batch'], bf16=True)\n"
    start = "    Trainer(model=model, args=arguments).train()\nS['batch'] = 8\n"
    text = f"{MADE}{LOADED}S = {{'batch': 1}}\n{train}{start}def main():\n    train()\nmain()\nS['batch'] = 2\n"
    assert alone("train.py", text).plan.value("training.micro_batch") == 8


@pytest.mark.parametrize(
    ("made", "batch", "is_said"),
    [
        ("batch = 4\nif old():\n    batch = 16\n", 8, True),
        ("batch = 4\nif old():\n    batch = 4\n", 4, False),
        ("if old():\n    batch = 4\nelse:\n    batch = 16\n", 8, True),
        ("batch = 4\nif False:\n    batch = 16\n", 4, False),
        ("if True:\n    batch = 4\nelse:\n    batch = 16\n", 4, False),
        ("import torch\nbatch = 4 if torch.cuda.get_device_capability()[0] >= 8 else 1\n", 4, False),
    ],
)
def test_what_only_a_run_decides_of_a_value_is_said(alone, made: str, batch: int, is_said: bool) -> None:
    train = "arguments = TrainingArguments('x', per_device_train_batch_size=batch, bf16=True)\n"
    imported = alone("train.py", f"{MADE}{LOADED}{made}{train}Trainer(model=model, args=arguments).train()\n")
    assert imported.plan.value("training.micro_batch") == batch
    assert ("per_device_train_batch_size" in said_of(imported)) is is_said


@pytest.mark.parametrize(
    ("condition", "quantization", "is_said"),
    [("False", None, False), ("True", "nf4", False), ("wanted()", "nf4", True)],
)
@pytest.mark.parametrize("form", ["value", "call", "keywords"])
def test_what_is_given_on_a_condition_counts_where_that_holds(
    alone, condition: str, quantization: str | None, is_said: bool, form: str
) -> None:
    given = {
        "value": "quantization_config=compressed if small else None",
        "call": "quantization_config=BitsAndBytesConfig(load_in_4bit=True) if small else None",
        "keywords": "**({'quantization_config': BitsAndBytesConfig(load_in_4bit=True)} if small else {})",
    }[form]
    before = f"small = {condition}\n" + "compressed = BitsAndBytesConfig(load_in_4bit=True)\n" * (form == "value")
    text = f"""{MADE}from peft import LoraConfig, get_peft_model
{before}model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', {given})
model = get_peft_model(model, LoraConfig(r=8))
Trainer(model=model, args=TrainingArguments('x', per_device_train_batch_size=2, bf16=True)).train()
"""
    imported = alone("train.py", text)
    assert imported.plan.value("training.quantization") == quantization
    if form != "value":
        assert any(name.startswith("if ") for name in said_of(imported)) is is_said


@pytest.mark.parametrize(
    ("source", "is_said"),
    [
        ("from trl import DPOTrainer", False),
        ("from trl.experimental import DPOTrainer", False),
        ("from quickalign.losses import DPOTrainer", True),
        ("import quickalign\nDPOTrainer = None", False),
        ("class DPOTrainer:\n    pass", True),
        ("import trl\nclass DPOTrainer(trl.SFTTrainer):\n    pass", False),
        ("from beside import DPOTrainer", False),
    ],
)
def test_a_class_of_another_library_is_said_to_be_one(tmp_path, alone, source: str, is_said: bool) -> None:
    (tmp_path / "beside.py").write_text("from trl import DPOTrainer\n")
    text = f"from transformers import AutoModelForCausalLM\n{source}\n{LOADED}DPOTrainer(model=model).train()\n"
    assert any("not of the library" in why for why in said_of(alone("train.py", text)).values()) is is_said


def test_an_adapter_that_is_trained_on_is_one(alone) -> None:
    adapted = "from peft import PeftModel\nmodel = PeftModel.from_pretrained(model, 'a', is_trainable=True)\n"
    text = f"{MADE}{LOADED}{adapted}arguments = TrainingArguments('x', per_device_train_batch_size=2)\n"
    imported = alone("train.py", f"{text}Trainer(model=model, args=arguments).train()\n")
    assert imported.plan.value("training.method") == "lora"
    assert "rank" in said_of(imported)["is_trainable"]


def test_options_that_reach_a_configuration_alone_are_said_to_be_unread(tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        f"""{MADE}import argparse
from transformers import AutoConfig
parser = argparse.ArgumentParser()
parser.add_argument("--num_layers", type=int)
parser.add_argument("--block", type=int)
options = parser.parse_args()
shape = AutoConfig.from_pretrained("gpt2", n_layer=options.num_layers)
model = AutoModelForCausalLM.from_config(shape)
arguments = TrainingArguments("x", per_device_train_batch_size=options.block, bf16=True)
Trainer(model=model, args=arguments).train()
"""
    )
    (tmp_path / "run.sh").write_text("python train.py --num_layers 48 --block 4\n")
    given = {"hardware.name": "h100-sxm-80gb", "model.name": "gpt2-small"}
    said = said_of(import_plan([str(tmp_path / "run.sh")], given))
    assert "--num_layers" in said
    assert "--block" not in said


def test_vllm_answers_in_sixteen_tokens_where_nothing_says_how_many(alone) -> None:
    text = "from vllm import LLM\nengine = LLM('Qwen/Qwen2.5-7B-Instruct')\nprint(engine.generate(['x']))\n"
    assert alone("ask.py", text).plan.value("inference.output_tokens") == 16
    said = text.replace("['x']", "['x'], sampling_params=mine")
    assert alone("ask.py", said).plan.value("inference.output_tokens") != 16


@pytest.mark.parametrize(
    ("before", "counted", "is_said"),
    [
        ('if [ "$1" = small ]; then N=2; elif [ "$1" = large ]; then N=8; else N=4; fi', 4, True),
        ("N=2\nif [ $# -gt 1 ]; then N=8; fi", 2, True),
        ("SIZE=$1\nif [[ $SIZE = 7 ]]; then N=2; else N=8; fi", 8, True),
        ("N=2\nif [ -d /scratch ]; then N=8; fi", 8, True),
        ("N=2\nif [ -d /scratch ]; then N=8; fi\nN=16", 16, False),
        ("for N in 1 8 32; do", 1, True),
        ("M=2\nif [ $M -ge 2 ]; then N=4; else N=1; fi", 4, False),
        ('if [ -z "$1" ]; then N=4; else N=$1; fi', 4, False),
    ],
)
def test_a_value_that_arguments_or_a_loop_decide_is_said_to_be_one_of_several(
    alone, before: str, counted: int, is_said: bool
) -> None:
    end = "\ndone" if before.startswith("for") else ""
    imported = alone("s.sh", f"{before}\nvllm serve Qwen/Qwen2.5-7B --max-num-seqs $N{end}\n")
    assert imported.plan.value("inference.concurrency") == counted
    assert ("--max-num-seqs" in said_of(imported)) is is_said


@pytest.mark.parametrize(
    ("text", "replicas"),
    [
        ("for d in 0 1 2 3; do\n CUDA_VISIBLE_DEVICES=$d {serve} --port 800$d &\ndone", 4),
        ('for d in $(seq 0 2); do\n CUDA_VISIBLE_DEVICES="$d" {serve} &\ndone', 3),
        ("N=8\nfor ((d = 0; d < N; d++)); do\n export CUDA_VISIBLE_DEVICES=$d\n {serve} &\ndone", 8),
        ("CUDA_VISIBLE_DEVICES=0 {serve} &\nCUDA_VISIBLE_DEVICES=1 {serve} --port 8001 &\n", 2),
        ("CUDA_VISIBLE_DEVICES=0 {serve}\nCUDA_VISIBLE_DEVICES=0 {serve}\n", 1),
        ("for p in 8000 8001; do\n CUDA_VISIBLE_DEVICES=0 {serve} --port $p &\ndone", 1),
    ],
)
def test_servers_on_devices_of_their_own_are_replicas(alone, text: str, replicas: int) -> None:
    serve = "vllm serve Qwen/Qwen2.5-7B --max-model-len 4096"
    assert alone("s.sh", text.replace("{serve}", serve)).plan.value("hardware.devices") == replicas


def test_lines_of_several_assignments_are_those_of_the_script() -> None:
    words = read_script("N=2 M=8 # two\nL=4\nrun $N $M $L\n").commands[-1]
    assert [word.text for word in words] == ["run", "2", "8", "4"]
    assert [word.text for word in read_script("N=2 \\\n run $N\n").commands[-1]] == ["run", "$N"]


@pytest.mark.parametrize(
    "text",
    [
        'serve() {\n  vllm serve Qwen/Qwen2.5-7B --max-model-len ${LENGTH:-4096} "$@"\n}\n',
        "case $1 in\n  start) vllm serve Qwen/Qwen2.5-7B --max-model-len 4096 ;;\n  stop) exit ;;\nesac\n",
        "for ((i = 0; i < 1; i++)); do vllm serve Qwen/Qwen2.5-7B --max-model-len 4096; done\n",
    ],
)
def test_a_script_that_serves_only_when_told_so_is_read_for_that(alone, text: str) -> None:
    plan = alone("serve.sh", f"#!/bin/bash\n{text}").plan
    assert plan.value("inference.prompt_tokens") + plan.value("inference.output_tokens") == 4096


@pytest.mark.parametrize("apply", ["kubectl apply -f - <<EOF\n{}EOF\n", "cat <<EOF | kubectl apply -f -\n{}EOF\n"])
def test_a_manifest_that_a_script_hands_on_is_read(alone, apply: str) -> None:
    manifest = """kind: Deployment
spec:
  replicas: 2
  template:
    spec:
      containers:
        - {name: a, image: vllm/vllm-openai, args: [--model, Qwen/Qwen2.5-7B], resources: {limits: {nvidia.com/gpu: 1}}}
"""
    imported = alone("up.sh", apply.format(manifest))
    assert imported.plan.value("hardware.devices") == 2


def test_a_slurm_job_names_its_device(tmp_path) -> None:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/bash\n#SBATCH --gres=gpu:A6000:4\nvllm serve Qwen/Qwen2.5-7B -tp 4\n")
    plan = import_plan([str(path)]).plan
    assert (plan.value("hardware.name"), plan.value("hardware.devices")) == ("rtx-a6000", 4)
    assert import_plan([str(path)], {"hardware.name": "h100-sxm-80gb"}).plan.value("hardware.name") == "h100-sxm-80gb"


def test_a_script_that_only_names_a_server_is_refused(alone) -> None:
    with pytest.raises(CapacityError, match="no command of a known tool"):
        alone("up.sh", "#!/bin/bash\nstart() {\n  say llama-server started\n  llama-server --version-of x\n}\n")


def test_a_section_with_one_option_of_a_tool_is_not_of_it(alone) -> None:
    text = """experiment: {name: a, stage: qlora}
training: {max_seq_length: 1024, per_device_train_batch_size: 4, gradient_accumulation_steps: 2, num_train_epochs: 1}
lora: {r: 16, lora_alpha: 32, target_modules: [q_proj, v_proj]}
"""
    plan = alone("train.yaml", text).plan
    assert (plan.task, plan.value("training.adapter.rank")) == ("finetune", 16)


def test_processes_for_all_devices_are_as_many_as_there_are(alone) -> None:
    options = "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --output_dir x --bf16"
    plan = alone("train.sh", f"torchrun --nproc_per_node=gpu train.py {options}\n").plan
    assert plan.value("hardware.devices") == 8


def test_a_quantized_base_without_adapters_is_a_contradiction(alone) -> None:
    loaded = LOADED.replace("'Qwen/Qwen2.5-7B'", "'Qwen/Qwen2.5-7B', load_in_4bit=True")
    train = f"{MADE}{loaded}Trainer(model=model, args=TrainingArguments('x', per_device_train_batch_size=2)).train()\n"
    assert "quantized_without_adapters" in {clash.rule for clash in alone("train.py", train).clashes}
    answer = f"{MADE}{loaded}print(model.generate(x))\n"
    assert not alone("ask.py", answer).clashes


def test_functions_that_call_each_other_in_many_ways_are_read_once() -> None:
    calls = "".join(f"f{at}() {{\n" + "".join(f"  f{other}\n" for other in range(30)) + "}\n" for at in range(30))
    script = read_script(f"{calls}start() {{\n  run --length 8\n}}\n", everything=True)
    assert [word.text for word in script.commands[-1]] == ["run", "--length", "8"]


@pytest.mark.parametrize("first", ["batch = settings['batch']", "batch, steps = read()", "batch = read()"])
def test_a_value_that_only_a_branch_says_does_not_count(alone, first: str) -> None:
    text = (
        f"{MADE}settings = json.load(open('own.json'))\n{first}\nif settings.get('debug'):\n    batch = 1\n"
        f"{LOADED}"
        "arguments = TrainingArguments(per_device_train_batch_size=batch)\nTrainer(model, arguments).train()\n"
    )
    (remark,) = (one for reading in alone("train.py", text).readings for one in reading.unmodelled)
    assert remark.why.startswith("only running the script tells batch")


def test_names_that_are_given_values_together_have_them(alone) -> None:
    text = (
        f"{MADE}batch, steps = 2, 16\n{LOADED}"
        "arguments = TrainingArguments(per_device_train_batch_size=batch, gradient_accumulation_steps=steps)\n"
        "Trainer(model, arguments).train()\n"
    )
    assert alone("train.py", text).plan.training.global_batch == 256


@pytest.mark.parametrize(
    ("condition", "longest"),
    [("if $MORE", 2048), ("if ! $MORE", 8192), ('if "$MORE"', 2048), ("if ! [ $MORE = no ]", 8192)],
)
def test_a_condition_that_is_true_or_false_decides(alone, condition: str, longest: int) -> None:
    text = f"MORE=false\nL=2048\n{condition}; then L=8192; fi\nvllm serve Qwen/Qwen3-8B --max-model-len $L\n"
    imported = alone("run.sh", text)
    inference = imported.plan.inference
    assert inference.prompt_tokens + inference.output_tokens == longest
    assert not any(reading.unmodelled for reading in imported.readings)


_SERVERS = """\
N=4
for (( i=0; i<N; i++ )); do
  GPUS=""
  for (( j=0; j<2; j++ )); do GPUS+="$(( i * 2 + j ))"; done
  CUDA_VISIBLE_DEVICES="$GPUS" vllm serve "$MODEL" --tensor-parallel-size 2 --port $(( 8000 + i )) &
done
for (( i=0; i<N; i++ )); do curl localhost:$(( 8000 + i )); done
"""


def test_servers_that_a_loop_starts_on_devices_of_its_turns_are_copies(alone) -> None:
    imported = alone("run.sh", f"MODEL=Qwen/Qwen3-8B\n{_SERVERS}")
    assert (imported.plan.hardware.devices, imported.plan.parallelism.tp) == (8, 2)
    assert imported.settings["hardware.devices"].value == 8
    assert not any("one of 0" in one.why for reading in imported.readings for one in reading.unmodelled)


@pytest.mark.parametrize(
    "counted",
    [
        "`nvidia-smi --list-gpus | wc -l`",
        "$(nvidia-smi -L | wc -l)",
        "$(python -c 'import torch; print(torch.cuda.device_count())')",
    ],
)
def test_devices_that_a_script_counts_are_those_of_the_machine(alone, counted: str) -> None:
    text = f'N={counted}\nvllm serve Qwen/Qwen3-32B --max-model-len 4096 --tensor-parallel-size "$N"\n'
    imported = alone("run.sh", text, {"hardware.devices": 4})
    assert (imported.plan.parallelism.tp, imported.plan.hardware.devices) == (4, 4)
    assert not any(reading.unmodelled or reading.unknown for reading in imported.readings)


def test_runs_of_branches_that_arguments_decide_are_named(alone) -> None:
    text = (
        'MODEL=$1\nif [ "$MODEL" = "large" ]; then\n  vllm serve Qwen/Qwen3-32B -tp 8\n'
        'elif [ "$MODEL" = "other" ]; then\n  echo none\nelse\n  vllm serve Qwen/Qwen3-8B -tp 2\nfi\n'
    )
    imported = alone("serve.sh", text)
    assert imported.plan.parallelism.tp == 2
    remarks = [(one.place.line, one.why) for reading in imported.readings for one in reading.unmodelled]
    assert (3, "started instead where arguments say so: not read") in remarks


_SET_LATER = """import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument('--fp16', type=bool, default=True)
parser.add_argument('--quantized', default={quantized})
def main():
    args = parser.parse_args()
    if args.quantized:
        args.fp16 = False
    model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')
    Trainer(model=model, args=TrainingArguments(output_dir='o', fp16=args.fp16)).train()
main()
"""


@pytest.mark.parametrize("quantized", [True, False])
def test_options_that_a_script_sets_itself_count_as_it_sets_them(alone, quantized: bool) -> None:
    imported = alone("train.py", _SET_LATER.format(quantized=quantized))
    assert (imported.plan.training.precision == "fp16") is not quantized


def test_a_branch_that_ends_a_script_before_it_trains_loses(alone) -> None:
    text = (
        "import sys\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "def main():\n    if '--evaluate' in sys.argv:\n        model = AutoModelForCausalLM.from_pretrained('saved')\n"
        "        return evaluate(model)\n    model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\n"
        "    Trainer(model=model, args=TrainingArguments(output_dir='o')).train()\nmain()\n"
    )
    imported = alone("train.py", text)
    assert (imported.plan.model.name, imported.clashes) == ("qwen3-8b", ())
