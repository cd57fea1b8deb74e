"""Logs that grow, are cut short, replaced, damaged, or not there yet."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from event_files import event, head, masked_checksum, record
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.runs.logs import LineReader, LineSplitter, RunCurve, open_log
from capacity_tui.engine.runs.logs.event_file import EventReader
from capacity_tui.engine.runs.logs.line_reader import read_metrics
from capacity_tui.engine.runs.logs.sources import FollowedFile, PipedLog

LINE = "iter {}: loss {}, time 250.00ms, mfu 3%\n"


@pytest.fixture(scope="module")
def reader():
    return LineReader()


def steps(entries):
    return [entry.figures["step"] for entry in entries]


def test_a_log_is_followed_from_before_it_exists(tmp_path, reader):
    path = tmp_path / "train.log"
    log = open_log(str(path), reader)
    assert log.poll() == []
    assert "waiting for train.log" in log.notices[0]
    path.write_text(LINE.format(1, 3.0) + "iter 2: loss")
    assert steps(log.poll()) == [1]
    with path.open("a") as file:
        file.write(" 2.5, time 250.00ms\n")
    assert steps(log.poll()) == [2]
    assert log.poll() == []
    log.close()


def test_what_trl_prints_on_a_terminal_tells_its_steps_and_whose_it_is(reader):
    """Printed by SFTTrainer of TRL 1.16 on Transformers 5.24: bars of the data first, then a bar amid figures."""
    curve, log = RunCurve(), open_log(str(Path(__file__).with_name("recorded_trl.txt")), reader)
    curve.add(log.poll(last=True))
    log.close()
    assert curve.program == "Hugging Face Trainer"
    assert curve.latest["total_steps"] == 6
    assert [values.tolist() for values in curve.column("loss")] == [[1, 2, 3], [3.372, 3.37, 3.368]]
    assert curve.step_seconds()[1].tolist() == [3.24, 4.5, 4.35]


@pytest.mark.parametrize("name", ["state.json", "page.prom", "train.log", "events.tfevents.1"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_what_is_no_regular_file_is_neither_waited_for_nor_read(tmp_path, reader, name, make):
    make(tmp_path / name)
    log = open_log(str(tmp_path / name), reader)
    assert log.poll() == log.poll(last=True) == []
    assert "not a regular file" in log.notices[0]
    log.close()


@pytest.mark.parametrize("name", ["state.json", "page.prom"])
def test_a_document_that_is_too_large_is_not_read(tmp_path, reader, name):
    with (tmp_path / name).open("wb") as file:
        file.truncate(1 << 40)
    log = open_log(str(tmp_path / name), reader)
    assert log.poll() == []
    assert "larger than" in log.notices[0]


def test_a_pipe_that_never_runs_dry_is_read_for_a_bounded_time_and_loses_nothing(reader):
    ends = os.pipe()
    lines = 100_000

    def write():
        with os.fdopen(ends[1], "w") as file:
            file.writelines(f"step {step} loss 2.5\n" for step in range(lines))

    threading.Thread(target=write, daemon=True).start()
    log, found, calls = PipedLog(reader, ends[0]), [], 0
    while not log.ended:
        found += log.poll()
        calls += 1
    assert calls > 1, "what comes meanwhile is left to the next look"
    assert steps(found) == list(range(lines))
    os.close(ends[0])


DAMAGED = {
    "noise": random.Random(0).randbytes(1 << 20),
    "zeros": bytes(1 << 20),
    "what may be a length anywhere": (b"\1" + bytes(7)) * (1 << 17),
    "heads alone": head(9) * (1 << 16),
    "short records": (head(9) + bytes(13)) * (1 << 15),
    "a long record": head(1 << 16) + bytes(1 << 16) + b"none",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_of_an_event_file_is_passed_over_about_as_fast_as_numbers_are_read(name):
    def seconds(data: bytes) -> float:
        began = time.process_time()
        assert EventReader().read(data) is not None
        return time.process_time() - began

    part = event(7, "loss", 2.5)
    damaged = DAMAGED[name] * ((4 << 20) // len(DAMAGED[name]))
    sound = part * (len(damaged) // len(part))
    seconds(damaged[: 1 << 18])
    assert min(seconds(damaged) for _ in range(3)) < 1.5 * min(seconds(sound) for _ in range(3))
    reader = EventReader()
    assert not reader.read(damaged).tags
    assert reader.damaged
    scalars = reader.read(bytes(1 << 17) + part)
    assert scalars[:3] == (["loss"], [2.5], [7])


@given(st.binary(max_size=300))
def test_checksums_are_those_of_the_polynomial(content):
    checksum = 0xFFFFFFFF
    for byte in content:
        checksum ^= byte
        for _ in range(8):
            checksum = checksum >> 1 ^ (0x82F63B78 if checksum & 1 else 0)
    checksum ^= 0xFFFFFFFF
    assert masked_checksum(content) == ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_rotation_and_truncation_lose_no_line(tmp_path, reader):
    path = tmp_path / "train.log"
    path.write_text(LINE.format(1, 3.0))
    log = open_log(str(path), reader)
    assert steps(log.poll()) == [1]
    with path.open("a") as file:
        file.write(LINE.format(2, 3.0))
    path.rename(tmp_path / "train.log.1")
    path.write_text(LINE.format(3, 2.9))
    assert steps(log.poll()) + steps(log.poll()) == [2, 3]
    assert any("replaced" in notice for notice in log.notices)
    path.write_text(LINE.format(4, 2.8)[:-1] + " x\n")
    assert steps(log.poll()) == [4], "the same file, as long as before, with another content"
    path.write_text("")
    assert log.poll() == []
    path.write_text(LINE.format(5, 2.8))
    assert steps(log.poll()) == [5]
    log.close()


def test_colours_bars_and_broken_bytes_are_read_through(tmp_path, reader):
    path = tmp_path / "train.log"
    bar = " 32%|###  | {}/873 [25:36<52:46,  5.35s/it]"
    path.write_bytes(
        b"\xff\xfe\x00" + b"x" * (1 << 20) + b"\n" + bar.format(1).encode() + b"\r" + bar.format(2).encode() + b"\r\n"
        + b"\x1b[2K\x1b[32miter\x1b[0m 7: loss \x1b[1m2.5\x1b[0m, time 250.00ms\x00\n"
        + LINE.format(8, 2.4).encode()[:-1]
    )  # fmt: skip
    log = open_log(str(path), reader)
    assert steps(log.poll(last=True)) == [1, 2, 7, 8]
    log.close()


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=20))
@settings(max_examples=25, deadline=None)
def test_lines_do_not_depend_on_the_pieces_they_come_in(data, cuts):
    whole = LineSplitter()
    expected = whole.split(data) + whole.rest()
    pieces, found, rest = LineSplitter(), [], data
    for cut in cuts:
        found += pieces.split(rest[:cut])
        rest = rest[cut:]
    assert found + pieces.split(rest) + pieces.rest() == expected


def test_a_line_without_end_takes_no_more_memory_than_it_may():
    splitter = LineSplitter(longest=1000)
    found = [line for _ in range(100) for line in splitter.split(b"x" * 100)]
    assert [len(line) for line in found] == [1000]
    assert splitter.split(b"y\nnext\n") == ["next"]


def test_the_state_of_the_trainer_is_read_as_often_as_it_is_written(tmp_path, reader):
    path = tmp_path / "checkpoint-20" / "trainer_state.json"
    path.parent.mkdir()
    history = [{"step": 10, "loss": 2.5, "learning_rate": 1e-4, "epoch": 0.1}]
    path.write_text(json.dumps({"global_step": 10, "max_steps": 100, "log_history": history}))
    log = open_log(str(tmp_path), reader)
    first = log.poll()
    assert first[0].figures["loss"] == 2.5
    assert first[-1].figures["total_steps"] == 100
    path.write_text('{"log_history": [{"st')
    assert log.poll() == []
    history += [{"step": 20, "loss": 2.25}, {"step": 20, "eval_loss": 2.0}]
    path.write_text(json.dumps({"global_step": 20, "max_steps": 100, "log_history": history}))
    assert [entry.figures.get("loss") for entry in log.poll()] == [2.25, None, None]


def test_a_table_that_is_written_anew_with_more_columns_is_read_again(tmp_path, reader):
    path = tmp_path / "version_0" / "metrics.csv"
    path.parent.mkdir()
    path.write_text("epoch,step,train_loss\n0,9,3.5\n")
    log = open_log(str(tmp_path), reader)
    assert steps(log.poll()) == [9]
    path.write_text("epoch,step,train_loss,val_loss\n0,9,3.5,\n0,19,3.25,3.0\n")
    assert steps(log.poll()) == [9, 19]
    log.close()


def test_a_folder_without_a_log_is_refused(tmp_path, reader):
    with pytest.raises(StorageError, match="holds no log"):
        open_log(str(tmp_path), reader)


def test_the_checksum_is_that_of_the_format():
    assert masked_checksum(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_event_files_tell_numbers_by_tag(tmp_path, reader):
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(
        record(b"\x1a\x0dbrain.Event:2") + event(1, "train/loss", 2.5) + event(2, "lm loss", 2.0, tensor=True)
    )
    log = open_log(str(tmp_path), reader)
    first, second = log.poll()
    assert dict(first.figures) == {"step": 1, "loss": 2.5}
    assert dict(second.figures) == {"step": 2, "loss": 2.0}
    assert second.at_seconds - first.at_seconds == 1.0
    log.close()


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_event_files_survive_cuts_and_damage(data):
    records = [event(step, "loss", float(step)) for step in range(1, 5)]
    content = b"".join(records)
    at = data.draw(st.integers(0, len(content) - 1))
    damaged = content[:at] + bytes([content[at] ^ 0x5A]) + content[at + 1 :]
    cut = data.draw(st.integers(0, len(damaged)))
    events = EventReader()
    before, after = events.read(damaged[:cut]), events.read(damaged[cut:])
    lost = at // len(records[0]) + 1
    assert before.steps + after.steps == [step for step in range(1, 5) if step != lost]
    assert before.values + after.values == before.steps + after.steps


def test_long_records_and_junk_between_are_passed_over():
    events = EventReader()
    data = event(1, "loss", 1.0) + record(b"\x2a" + b"p" * 100_000) + b"junk" * 10 + event(2, "loss", 2.0)
    pieces = [data[start : start + 7_000] for start in range(0, len(data), 7_000)]
    assert [step for piece in pieces for step in events.read(piece).steps] == [1, 2]
    assert events.damaged == 1


PAGE = """# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="a}}b"}} 3.0
vllm:num_requests_running{{engine="1",model_name="a"}} 4.0
vllm:kv_cache_usage_perc{{engine="0"}} 0.25
vllm:kv_cache_usage_perc{{engine="1"}} 0.5
vllm:generation_tokens_total{{engine="0"}} {tokens}
vllm:inter_token_latency_seconds_bucket{{le="+Inf"}} 10
vllm:inter_token_latency_seconds_sum {seconds}
vllm:inter_token_latency_seconds_count {count}
broken line {{
vllm:num_requests_waiting NaN
"""


def test_metrics_add_up_and_means_are_those_of_late():
    first, before = read_metrics(PAGE.format(tokens=100, seconds=1.0, count=10), {})
    assert first["vllm:num_requests_running"] == 7
    assert first["vllm:kv_cache_usage_perc"] == 0.5
    assert first["vllm:inter_token_latency_seconds"] == pytest.approx(0.1)
    later, _ = read_metrics(PAGE.format(tokens=300, seconds=5.0, count=20), before)
    assert later["vllm:inter_token_latency_seconds"] == pytest.approx(0.4)


def test_a_page_of_metrics_is_asked_for_each_time(reader):
    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.format(tokens=100, seconds=1.0, count=10).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    log = open_log(f"http://127.0.0.1:{server.server_port}/metrics", reader)
    (entry,) = log.poll()
    assert entry.figures["tokens"] == 100
    assert entry.figures["running_requests"] == 7
    assert entry.program == "vLLM"
    thread.join()
    server.server_close()
    assert log.poll() == []
    assert log.notices


def test_a_pipe_is_read_until_whoever_writes_ends(reader):
    out, into = os.pipe()
    log = PipedLog(reader, out)
    assert log.poll() == []
    os.write(into, LINE.format(1, 3.0).encode() + b"iter 2: loss 2.5, time 250.00ms")
    assert steps(log.poll()) == [1]
    assert not log.ended
    os.close(into)
    assert steps(log.poll()) == [2]
    assert log.ended
    os.close(out)


def test_a_followed_file_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("capacity_tui.engine.runs.logs.sources.MOST_BYTES", 10)
    path = tmp_path / "x"
    path.write_bytes(b"0123456789abcdef")
    file = FollowedFile(path)
    assert [file.read(), file.read(), file.read()] == [b"0123456789", b"abcdef", b""]
    file.close()
