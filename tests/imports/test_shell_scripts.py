"""Shell scripts are read as a shell would read them, without being run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.plan.imports import import_plan
from capacity_tui.engine.plan.imports.scripts.shell import read_script


def last_words(text):
    return [word.text for word in read_script(text).commands[-1]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('A=(--tp 2)\nA+=(--pp 4)\nrun "${A[@]}"\n', ["run", "--tp", "2", "--pp", "4"]),
        ('A="--tp 2"\nA+=" --pp 4"\nrun $A\n', ["run", "--tp", "2", "--pp", "4"]),
        ("A=( --tp 2 # two\n  --pp 4 )\nrun ${A[@]}", ["run", "--tp", "2", "--pp", "4"]),
        ('A=(--x 1)\nA=("${A[@]}" --y 2)\nrun ${A[@]}', ["run", "--x", "1", "--y", "2"]),
        ("N=4\nrun --n $((N * 8 / 2))", ["run", "--n", "16"]),
        ("run --n ${N:-3} --m $UNKNOWN", ["run", "--n", "3", "--m", "$UNKNOWN"]),
        ("CMD='run --a 1'\nsrun -l bash -x -c '$CMD --b \"two words\"'", ["run", "--a", "1", "--b", "two words"]),
        ("N=${A:-${B:-8}}\nrun $N ${X:+--x $X} ${N:+--n $N} ${1:-q.yml}", ["run", "8", "--n", "8", "q.yml"]),
        (': "${M:=gpt2}"\nrun $M', ["run", "gpt2"]),
        (
            'A=(--x 1)\n[ -n "${Q:-}" ] && A+=(--q $Q)\n[ -z "${Q:-}" ] && A+=(--y 2)\nrun ${A[@]}',
            ["run", "--x", "1", "--y", "2"],
        ),
        ('W=64\nC=" a --s "w=$W,h=8" --f "\nrun $C', ["run", "a", "--s", "w=64,h=8", "--f"]),
        ("f() { run --name $1 $2; }\nf a b", ["run", "--name", "a", "b"]),
        ("for m in 1 2; do run $m; done", ["run", "1"]),
        ('X=1\nif [ "$X" = 1 ]; then run yes; else run no; fi', ["run", "yes"]),
        ("X=2\nif [[ $X == 1 ]]; then run yes; elif [ $X -eq 2 ]; then run two; else run no; fi", ["run", "two"]),
        ("S=big\ncase $S in small) N=1;; big) N=8;; esac\nrun $N", ["run", "8"]),
        ("#SBATCH --nodes=4\n#SBATCH --gres=gpu:h100:8\nrun $SLURM_NNODES $SLURM_GPUS_ON_NODE", ["run", "4", "8"]),
        ("sbatch <<EOF\n#!/bin/bash\nsrun run --a 1\nEOF\n", ["srun", "run", "--a", "1"]),
        ("run --a 1 `# a remark` --b 2", ["run", "--a", "1", "--b", "2"]),
        ("export A=1 B=2\nrun $A$B", ["run", "12"]),
        ('M=a\nif [ "$1" = "-d" ]; then M=b; fi\nrun $M', ["run", "a"]),
        ("N=4\nrun --n $(expr 32 / $N / 2)", ["run", "--n", "4"]),
        ("run --port <a-port> --tp 4", ["run", "--port", "--tp", "4"]),
        ("A=1\nL=(--f [0]*$A+[1]*$A --n 4)\nrun ${L[@]}", ["run", "--f", "[0]*1+[1]*1", "--n", "4"]),
        (
            'L=(--f "\'([1]*4)\'" --n 8)\nC="run ${L[@]} --z 3"\neval $C',
            ["run", "--f", "([1]*4)", "--n", "8", "--z", "3"],
        ),
        ("export P=<a partition, of the cluster>\nexport A=3\nrun $A", ["run", "3"]),
        (
            'IP=$(scontrol show | head -n 1)\nC="run --ip $IP --n 2"\n$C',
            ["run", "--ip", "$(scontrol show | head -n 1)", "--n", "2"],
        ),
    ],
)
def test_a_command_gets_the_words_that_a_shell_would_give_it(text, words):
    assert last_words(text) == words


@pytest.mark.parametrize("values", ["{100..2000..100}", "$(seq 100 7 121)", "$( eval echo {$FIRST..$LAST} )"])
def test_a_loop_begins_with_the_first_number_that_it_counts(values):
    text = f"FIRST=100\nLAST=300\nfor more in {values}; do\n  run --length $(($more + 2048))\ndone\n"
    assert last_words(text) == ["run", "--length", "2148"]


def test_a_branch_that_only_the_shell_can_decide_is_followed():
    text = "if [ -f x ]; then run one; else run two; fi"
    assert [words[1].text for words in read_script(text).commands] == ["one", "two"]


def test_scripts_that_a_script_reads_in_or_starts_are_followed():
    others = {"`pwd`/sizes.sh": "export ARGS='--tp 4'", "start.sh": "run $ARGS"}
    script = read_script("N=1\n. `pwd`/sizes.sh\nsbatch --nodes=$N start.sh\n", others.get)
    (words,) = script.commands
    assert [(word.text, word.line) for word in words] == [("run", 3), ("--tp", 2), ("4", 2)]


def test_files_that_a_script_writes_have_its_variables_and_lines():
    script = read_script('STAGE=2\ncat <<EOT > ds.json\n{"stage": $STAGE}\nEOT\n')
    (file,) = script.files
    assert (file.name, file.text.strip(), file.line) == ("ds.json", '{"stage": 2}', 3)


def test_words_keep_the_line_on_which_they_stand():
    text = "#!/bin/bash\nA=(\n  --x 1\n  --y 2\n)\nrun ${A[@]}\n"
    assert {word.text: word.line for word in read_script(text).commands[-1]} == {
        "run": 6,
        "--x": 3,
        "1": 3,
        "--y": 4,
        "2": 4,
    }


@given(st.text(alphabet="ab1 =$(){}[]'\"\\;&|<>\n`#-", max_size=60))
def test_no_text_is_a_mistake(text):
    read_script(text)


def test_of_branches_that_only_the_shell_decides_the_last_counts_as_a_whole():
    text = "B=8\nD=0\nif [ -f x ]; then B=${B:-1}; L=${L:-8192}; D=1; else B=64; L=${L:-4096}; fi\n"
    script = read_script(f"{text}if [[ $D -eq 1 ]]; then S=2; else S=3; fi\nrun --b $B --l $L --s $S\n")
    assert [word.text for word in script.commands[-1]] == ["run", "--b", "64", "--l", "4096", "--s", "3"]
    assert script.choices == {"B": ("8", "64"), "L": ("8192", "4096"), "D": ("1", "0"), "S": ("2", "3")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('D=0\nB=4\nif [ "$1" = --debug ]; then D=1; fi\nif [ "$D" = 1 ]; then B=1; fi\nrun --b $B', "run --b 4"),
        ('D=0\nB=4\nif [ "$1" = --debug ]; then D=1; fi\n[ "$D" = 1 ] && B=1\nrun --b $B', "run --b 4"),
        ('go() { run --b 4; }\nif [ "$1" = debug ]; then go() { run --b 1; }; fi\ngo', "run --b 4"),
        ('go() { run "$@"; }\ngo --b 4', "run --b 4"),
        ('go() { local n=$1; shift; run $n "$@" $2; }\ngo 7 --b 4', "run 7 --b 4 4"),
        ("go() { shift 2; run $1; }\ngo 1 2 3", "run 3"),
        ('go() { run "${@}" --c; }\ngo --b 4', "run --b 4 --c"),
        ('F="--on"\nif [ -z "" ]; then unset F; fi\nrun --b 4 ${F:-}', "run --b 4"),
        ('if [ "$1" = big ]; then S=70; else S=8; fi\nif [ $S = 8 ]; then B=4; else B=1; fi\nrun $S $B', "run 8 4"),
    ],
)
def test_what_no_argument_asks_for_is_not_done(text: str, words: str):
    assert last_words(text) == words.split()


@pytest.mark.parametrize("command", ["vllm serve $m --max-model-len 4096", "llama-server --model /m/$m-Q4_K_M.gguf"])
@pytest.mark.parametrize(
    "chooses", ["for m in Qwen3-4B Qwen3-8B; do\n{}\ndone", "if [ -f x ]; then m=Qwen3-8B; else m=Qwen3-4B; fi\n{}"]
)
def test_one_of_several_models_is_named_wherever_it_stands(alone, command: str, chooses: str) -> None:
    (remark,) = alone("run.sh", f"{chooses.format(command)}\n").readings[0].unmodelled
    assert remark.why.startswith("one of Qwen3-")


_STARTED = 'vllm serve ${MODEL:-$1} --max-model-len ${LENGTH:-4096} "${@:2}"\n'


@pytest.mark.parametrize(
    ("command", "model", "length", "requests"),
    [
        ("MODEL=Qwen/Qwen3-8B LENGTH=2048 bash serve.sh", "qwen3-8b", 2048, None),
        ("env MODEL=Qwen/Qwen3-8B LENGTH=2048 ./serve.sh", "qwen3-8b", 2048, None),
        ("bash serve.sh Qwen/Qwen3-8B --max-num-seqs 7", "qwen3-8b", 4096, 7),
        ("sbatch --nodes=1 serve.sh Qwen/Qwen3-8B", "qwen3-8b", 4096, None),
    ],
)
def test_a_script_has_the_variables_and_arguments_that_it_is_started_with(
    alone, tmp_path: Path, command: str, model: str, length: int, requests: int | None
) -> None:
    (tmp_path / "serve.sh").write_text(_STARTED)
    plan = alone("run.sh", f"{command}\n").plan
    inference = plan.inference
    assert (plan.model.name, inference.prompt_tokens + inference.output_tokens) == (model, length)
    assert inference.concurrency == requests


def test_variables_of_one_script_are_none_of_the_next(alone, tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text("vllm serve Qwen/Qwen3-8B --max-model-len ${LENGTH:-4096}\n")
    imported = alone("run.sh", "LENGTH=2048 bash prepare.sh\nbash serve.sh\n")
    assert imported.plan.inference.prompt_tokens + imported.plan.inference.output_tokens == 4096


def test_what_a_program_prints_is_one_word_however_many_brackets_it_has(alone) -> None:
    text = (
        "TOKENS=$(python3 -c \"import json; print(json.load(open('$DATA'))['tokens'])\")\n"
        'LINE="accelerate launch --num_processes 2 own/train.py --model_name_or_path Qwen/Qwen3-8B --tokens $TOKENS '
        '--per_device_train_batch_size 3 --num_train_epochs 2"\neval $LINE\n'
    )
    assert alone("run.sh", text).plan.training.micro_batch == 3


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_devices_of_a_job_may_stand_in_quotes(tmp_path: Path, quote: str) -> None:
    text = f"#!/bin/bash\n#SBATCH --gres={quote}gpu:a6000:2{quote}\nvllm serve Qwen/Qwen3-8B -tp $SLURM_GPUS_ON_NODE\n"
    (tmp_path / "run.sh").write_text(text)
    plan = import_plan([str(tmp_path / "run.sh")]).plan
    assert (plan.hardware.name, plan.parallelism.tp) == ("rtx-a6000", 2)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("[[ $MODEL == *8B ]]", True),
        ("[[ $MODEL != *8B ]]", False),
        ('[[ $MODEL == *"8B" ]]', True),
        ('[[ $MODEL == "*8B" ]]', False),
        ('[[ "$MODEL" =~ ^Qwen/.*B$ ]]', True),
        ('[[ "$MODEL" =~ ^Llama ]]', False),
        ("[[ $MODEL == Llama* || $MODEL == Qwen* ]]", True),
        ("[[ $MODEL == Llama* && $UNKNOWN == 1 ]]", False),
        ("[[ $MODEL == Llama* ]] || [[ $DEVICES -gt 1 ]]", True),
        ("[ $EMPTY ]", False),
        ('[ "$MODEL" ]', True),
        ("[[ ! -n $EMPTY ]]", True),
        ("(( DEVICES > 2 ))", True),
        ("(( DEVICES <= 2 ))", False),
        ("[[ ($DEVICES -eq 4) ]]", True),
        ('[[ "$DEVICES" > 16 ]]', True),  # as texts
        ("[[ DEVICES -eq 4 ]]", True),
        ("[ 04 -eq $DEVICES ]", True),
        ('[[ a+b =~ "a+b" ]]', True),
        ("[[ $MODEL == [^Q]* ]]", False),
    ],
)
def test_conditions_that_a_script_decides_are_decided(alone, condition: str, holds: bool) -> None:
    text = (
        "MODEL=Qwen/Qwen3-8B\nDEVICES=4\nEMPTY=\nOPTIONS=(--max-model-len 8192)\n"
        f'if {condition}; then OPTIONS+=(-tp 2); fi\nvllm serve $MODEL "${{OPTIONS[@]}}"\n'
    )
    assert alone("serve.sh", text).plan.parallelism.tp == (2 if holds else 1)


@pytest.mark.parametrize(
    ("line", "degree"),
    [
        ("[[ $MODEL == *8B ]] && T=2 || T=4", 2),
        ("[[ $MODEL == *7B ]] && T=2 || T=4", 4),
        ("case $MODEL in [^Q]*) T=2;; *) T=4;; esac", 4),
        ('case $MODEL in "*") T=2;; *) T=4;; esac', 4),
    ],
)
def test_a_choice_in_one_line_is_decided(alone, line: str, degree: int) -> None:
    text = f"MODEL=Qwen/Qwen3-8B\n{line}\nvllm serve $MODEL -tp $T\n"
    imported = alone("serve.sh", text)
    assert imported.plan.parallelism.tp == degree
    assert not imported.readings[0].unmodelled


@pytest.mark.parametrize("condition", ["[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab =~ ^(a+)+c ]]", '[ "$DEBUG" ]'])
def test_a_choice_that_is_not_decided_is_said(alone, condition: str) -> None:
    text = f"T=2\n{condition} && T=4\nvllm serve Qwen/Qwen3-8B -tp $T\n"
    (remark,) = alone("serve.sh", text).readings[0].unmodelled
    assert remark.why.startswith("one of 2, 4")


def test_a_branch_that_does_not_hold_leaves_options_as_they_are(alone) -> None:
    text = (
        "model=sdxl_lora\nrank=32\nif [[ $model != *lora ]]; then\n  rank=\nfi\nadded=()\n"
        "if [ $rank ]; then added+=(--lora_r=$rank); fi\n"
        "case $model in *full) added=();; *lora) added+=(--bf16 True);; esac\n"
        "python train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --num_train_epochs 3 "
        "${added[@]}\n"
    )
    training = alone("run.sh", text).plan.training
    assert (training.adapter.rank, training.precision) == (32, "bf16")
