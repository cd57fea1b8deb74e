"""Files as nobody wants them: logs, plans, configurations, models, tables and histories, damaged at random from a seed.

Whatever stands in one, it is read or refused in one line of printable text, in bounded time.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random

import yaml
from event_files import event

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.models import read_model_file
from capacity_tui.engine.plan.files import example_names, example_text, read_source
from capacity_tui.engine.plan.imports import import_plan
from capacity_tui.engine.printable import printable
from capacity_tui.engine.runs.accuracy.shared_runs import COLUMNS, read_shared
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns
from capacity_tui.engine.runs.logs import LineReader, RunCurve, open_log, read_log
from capacity_tui.engine.storage import FitQuestion, fit_corpus

HERE = Path(__file__).parent
SECONDS, SECONDS_A_MIB = 10.0, 10.0  # Processor time that a file may take at most
MOST_BYTES = 1 << 20
LONGEST_LINE = 2000
NUMBERS = (
    b"nan",
    b"-inf",
    b"1e999",
    b"-1",
    b"0",
    b"9" * 5000,
    b"0x1F",
    b"1_000",
    b"1,5",
    "١٢".encode(),
    b"2e308",
    b"-0.0",
)
PIECES = (b"\x1b]0;title\x07", b"\x1b[2J", b"\0", b"\r", b"\xff\xfe", b"\xef\xbb\xbf", "\u202e".encode(), b'"', b"'",
          b"&a *a", b"!!python/object/apply:os.system [id]", b"<<: ", b"${oc.env:HOME}", b"%s%n", b"\n- - ", b"\t",
          )  # fmt: skip

Change = Callable[[bytes, Random], bytes]


def _place(data: bytes, chance: Random) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.choice((1, 5, 80, 2000)))


def _cut(data: bytes, chance: Random) -> bytes:
    return data[: _place(data, chance)[0]]


def _without(data: bytes, chance: Random) -> bytes:
    start, end = _place(data, chance)
    return data[:start] + data[end:]


def _noise(data: bytes, chance: Random) -> bytes:
    start, end = _place(data, chance)
    return data[:start] + chance.randbytes(end - start) + data[end:]


def _repeated(data: bytes, chance: Random) -> bytes:
    start, end = _place(data, chance)
    piece = data[start:end] or b" "
    return data[:start] + piece * chance.choice((2, 1000, MOST_BYTES // len(piece))) + data[end:]


def _other_number(data: bytes, chance: Random) -> bytes:
    digits = [place for place, byte in enumerate(data) if 48 <= byte < 58]
    if not digits:
        return data
    start = chance.choice(digits)
    end = next((place for place in range(start, len(data)) if not 48 <= data[place] < 58), len(data))
    return data[:start] + chance.choice(NUMBERS) + data[end:]


def _piece(data: bytes, chance: Random) -> bytes:
    start, _ = _place(data, chance)
    return data[:start] + chance.choice(PIECES) + data[start:]


def _nested(data: bytes, chance: Random) -> bytes:
    start, _ = _place(data, chance)
    return data[:start] + chance.choice((b"[", b"{", b'{"a":', b"- ", b"(")) * chance.choice((3, 50_000)) + data[start:]


def _wide(data: bytes, _: Random) -> bytes:
    return data.decode("utf-8", "replace").encode("utf-16")


def _swapped(data: bytes, chance: Random) -> bytes:
    lines = data.split(b"\n")
    chance.shuffle(lines)
    return b"\n".join(lines)


CHANGES: tuple[Change, ...] = (
    _cut, _without, _noise, _repeated, _other_number, _other_number, _other_number, _piece, _piece, _nested, _wide,
    _swapped,
)  # fmt: skip


def hostile(data: bytes, chance: Random) -> bytes:
    """Return data that was damaged up to four times."""
    for _ in range(chance.randrange(1, 5)):
        data = chance.choice(CHANGES)(data, chance)[:MOST_BYTES]
    return data


@cache
def _log_lines() -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {}
    for each in yaml.safe_load((HERE / "runs" / "recorded_lines.yaml").read_text("utf-8")):
        lines.setdefault(each["program"], []).append(each["line"])
    return lines


def _log(folder: Path, chance: Random) -> Path:
    """Write the first half of a log; ``_read_log`` appends the other."""
    kind = chance.choice(("lines", "lines", "lines", "state", "events", "table", "page"))
    if kind == "state":
        steps = [{"step": step, "loss": 2.5, "epoch": 0.1 * step, "grad_norm": "nan"} for step in range(30)]
        name, data = "trainer_state.json", json.dumps({"global_step": 30, "log_history": steps}).encode()
    elif kind == "events":
        name, data = "events.out.tfevents.1", b"".join(event(step, "loss", 2.5) for step in range(60))
    elif kind == "table":
        name, data = "metrics.csv", b"step,loss,time\n" + b"".join(b"%d,2.5,0.25\n" % step for step in range(60))
    elif kind == "page":
        name, data = "page.prom", b"vllm:num_requests_running 3\nvllm:generation_tokens_total 100\n" * 5
    else:
        name, data = "train.log", ("\n".join(chance.choice(list(_log_lines().values()))) + "\n").encode() * 10
    path = folder / name
    path.write_bytes(hostile(data, chance))
    return path


def _read_log(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    log, curve = open_log(str(path), LineReader()), RunCurve()
    for last in (False, True):
        entries = log.poll(last=last)
        curve.add(entries, 1.0)
        for entry in entries:
            assert all(isinstance(value, int | float) for value in entry.figures.values()), entry
        path.write_bytes(data)
    log.close()
    read_log(str(path))


def _plan(folder: Path, chance: Random) -> Path:
    path = folder / chance.choice(("plan.yaml", "plan.json", "plan"))
    path.write_bytes(hostile(example_text(chance.choice(example_names())).encode(), chance))
    return path


def _configuration(folder: Path, chance: Random) -> Path:
    sample = chance.choice(sorted((HERE / "imports" / "samples").iterdir()))
    path = folder / sample.name
    path.write_bytes(hostile(sample.read_bytes(), chance))
    return path


def _model(folder: Path, chance: Random) -> Path:
    sizes: Mapping[str, object] = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
                                   "vocab_size": 1000, "intermediate_size": 128}  # fmt: skip
    if chance.random() < 0.5:
        path = folder / "config.json"
        data = json.dumps({"architectures": ["LlamaForCausalLM"], **sizes}).encode()
    else:
        path = folder / "model.gguf"
        pairs = {"llama.block_count": 2, "llama.embedding_length": 64, "llama.attention.head_count": 4,
                 "llama.feed_forward_length": 128, "llama.vocab_size": 1000}  # fmt: skip
        data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs) + 1) + _gguf_text("general.architecture")
        data += struct.pack("<I", 8) + _gguf_text("llama")
        data += b"".join(_gguf_text(key) + struct.pack("<II", 4, value) for key, value in pairs.items())
    path.write_bytes(hostile(data, chance))
    return path


def _gguf_text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _table(folder: Path, chance: Random) -> Path:
    columns = [*COLUMNS, "model.name", "hardware.name", "training.seq_len"]
    values = {"model.name": "gpt2", "hardware.name": "rtx-4090", "training.seq_len": "512"}
    row = ",".join(values.get(column, "1") for column in columns)
    path = folder / "runs.csv"
    path.write_bytes(hostile("\n".join((",".join(columns), *[row] * 5, "")).encode(), chance))
    return path


def _corpus(folder: Path, chance: Random) -> Path:
    text = b"The quick brown fox jumps over the lazy dog. " * 100
    path = folder / chance.choice(("text.txt", "text.jsonl", "text.npy", "text.jsonl.gz", "text.parquet"))
    path.write_bytes(hostile(b'{"text": "%s"}\n' % text if "jsonl" in path.name else text, chance))
    return path


_SMALL = {"chunk": 4, "levels": 2, "kept": 1000}


def _history(folder: Path, chance: Random) -> Path:
    path = folder / "history.sqlite"
    step = "computation.step_seconds"
    runs = (
        RunRecord(
            "run",
            {"model": {"name": "gpt2"}},
            actual={step: 0.1 * run},
            started=f"2026-01-{run:02}T00:00:00.000Z",
            id=f"{run:010x}",
        )
        for run in range(1, 30)
    )
    History(path).keep(*runs)
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 20, 300))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data if chance.random() < 0.8 else hostile(bytes(data), chance))
    return path


def _read_history(path: Path) -> None:
    further = RunRecord("run", {"model": {"name": "gpt2"}}, device="cpu-x")
    history = History(path)
    history.keep(further)
    assert further.id in {run.id for run in History(path).find(WantedRuns())}, "what is kept afterwards is lost"


KINDS: Mapping[str, tuple[Callable[[Path, Random], Path], Callable[[Path], object]]] = {
    "log": (_log, _read_log),
    "plan": (_plan, lambda path: read_source(str(path)).plan()),
    "configuration": (_configuration, lambda path: import_plan([str(path)])),
    "model": (_model, read_model_file),
    "shared runs": (_table, read_shared),
    "corpus": (_corpus, lambda path: fit_corpus(str(path), FitQuestion(**_SMALL))),
    "history": (_history, _read_history),
}


def broken_reading(kind: str, seed: int, folder: Path) -> Iterator[str]:
    """Yield what goes wrong as a hostile file is read.

    Args:
        kind: one of ``KINDS``.
        seed: of the file.
        folder: an empty one for it.
    """
    make, read = KINDS[kind]
    path = make(folder, Random(seed))
    size, began = path.stat().st_size, time.process_time()
    try:
        read(path)
    except CapacityError as error:
        line = error.one_line()
        if printable(line) != line or "\n" in line:
            yield f"refused in words that are not printable: {line[:200]!r}"
        if len(line) > LONGEST_LINE + len(str(path)):
            yield f"refused in {len(line)} characters: {line[:200]!r}"
        if kind == "history":
            yield f"the history cannot be used: {line}"
    seconds = time.process_time() - began
    if seconds > SECONDS + SECONDS_A_MIB * size / 2**20:
        yield f"{seconds:.0f} s of a processor for {size} bytes"
