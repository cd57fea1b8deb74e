"""llama.cpp's own server on a tiny model: followed, compared, learnt from, and started again where it was killed.

CAPACITY_TEST_LLAMA_SERVER names one that is not on the path.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from capacity_tui.engine.machine import detect
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.runs.guard import Listeners, begin, new_order
from capacity_tui.engine.runs.guard.failures import Kernel, KernelWatch
from capacity_tui.engine.runs.history import History
from capacity_tui.engine.runs.sampling import user_runs
from capacity_tui.engine.solve import answer
from capacity_tui.tui.cli import main
from tests.runs.gguf_model import write_llama

SERVER = os.environ.get("CAPACITY_TEST_LLAMA_SERVER") or shutil.which("llama-server")
REQUEST, FURTHER = "computation.infer.request_seconds", "computation.infer.time_per_output_token_seconds"
PROMPT, OUTPUT, REQUESTS, LONGEST = 96, 32, 6, 60.0
PLAN = f"""
task: infer
model: {{config: tiny.gguf}}
inference: {{prompt_tokens: {PROMPT}, output_tokens: {OUTPUT}, engine: llamacpp, concurrency: 1}}
hardware: {{name: detected}}
watch: {{interval: 0.2}}
recovery: {{max_restarts: 1, killed: restart}}
"""

pytestmark = pytest.mark.skipif(SERVER is None, reason="llama-server is not installed")


class Client:
    """Asks a server, one request behind the other, from a thread of its own."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def asks(self, *actions):
        thread = threading.Thread(target=self._act, args=(actions,))
        thread.start()
        return thread

    def _act(self, actions):
        for action in actions:
            action()

    def wait(self):
        until = time.monotonic() + LONGEST
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=LONGEST).read()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("the server does not answer")

    def answers(self):
        for number in range(REQUESTS):
            prompt = [259 + (number * 7 + token) % 40 for token in range(PROMPT)]
            wanted = {"prompt": prompt, "n_predict": OUTPUT, "ignore_eos": True, "cache_prompt": False}
            request = urllib.request.Request(f"{self.url}/completion", json.dumps(wanted).encode())
            assert json.load(urllib.request.urlopen(request, timeout=LONGEST))["tokens_predicted"] == OUTPUT

    def signals(self, number):
        return lambda: [process.send_signal(number) for process in self._processes()]

    def _processes(self):
        port = self.url.rpartition(":")[2]
        return [
            process
            for process in psutil.Process().children(recursive=True)
            if Path(process.name()).name == Path(SERVER).name and port in process.cmdline()
        ]


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A client, and the command of the server that it asks."""
    for name in ("STATE", "DATA", "HISTORY"):
        monkeypatch.setenv(f"CAPACITY_TUI_{name}", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    write_llama(Path("tiny.gguf"), layers=2, hidden=64, heads=2, kv_heads=2, ffn=128, vocab=300, context=512)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [SERVER, "-m", "tiny.gguf", "--port", str(port), "-c", "256", "-np", "1", "-t", "1", "--metrics"]
    return Client(port), words


def test_a_killed_server_is_started_again_as_it_was(served, monkeypatch):
    client, words = served
    monkeypatch.setattr(KernelWatch, "report", lambda _: Kernel(oom_kills=0))
    told, entries = [], []
    listeners = Listeners(told.append, lambda _, __: None, lambda _, __: None, entries.append)
    estimated = answer(plan_from_text(PLAN, "plan.yaml"), detect())
    asking = client.asks(
        client.wait, client.answers, client.signals(signal.SIGKILL), client.wait, client.answers,
        client.signals(signal.SIGTERM),
    )  # fmt: skip
    assert begin(new_order(words, estimated.plan), estimated, listeners).run() == 0
    asking.join()
    assert [event["kind"] for event in told if event["event"] == "failure"] == ["killed"]
    first, second = (event["command"] for event in told if event["event"] == "started")
    assert first == second
    (entry,) = entries
    assert (entry.details["restarts"], entry.details["exit_code"]) == (1, 0)


def test_a_server_is_followed_compared_and_learnt_from(served, tmp_path, monkeypatch, capfd):
    client, words = served
    # Others on the same cores hold the server up; what it took is learnt all the same.
    monkeypatch.setattr(user_runs, "HELD_UP", {})
    Path("plan.yaml").write_text(PLAN)
    asking = client.asks(client.wait, client.answers, client.signals(signal.SIGTERM))
    assert main(["monitor", "--interval", "0.2", "--plan", "plan.yaml", "--", *words]) == 0
    asking.join()
    (run,) = History(tmp_path / "history").find()
    prompts, further = run.actual["computation.infer.prefill_tokens_per_second"], run.actual[FURTHER]
    assert run.actual[REQUEST] == pytest.approx(PROMPT / prompts + (OUTPUT - 1) * further)
    assert set(run.ratio) >= {REQUEST, FURTHER}
    assert main(["calibrate", "--device", "cpu"]) == 0
    capfd.readouterr()
    assert main(["plan", "plan.yaml", "--format", "json"]) == 0
    learnt = json.loads(capfd.readouterr().out)["computation"]["infer"]["request_seconds"]["value"]
    assert abs(math.log(run.actual[REQUEST] / learnt)) < abs(math.log(run.ratio[REQUEST]))


def test_a_cache_in_another_format_than_the_plan_says_is_told(served):
    client, words = served
    Path("plan.yaml").write_text(PLAN)
    asking = client.asks(client.wait, client.answers, client.signals(signal.SIGTERM))
    kept = ["-lv", "4", "-fa", "on", "-ctk", "q5_1", "-ctv", "q5_1"]
    looks = ["--interval", "0.2", "--plan", "plan.yaml", "--jsonl", "looks.jsonl", "--no-history"]
    assert main(["monitor", *looks, "--", *words, *kept]) == 0
    asking.join()
    reasons = [reason for line in Path("looks.jsonl").read_text().splitlines() for reason in json.loads(line)["why"]]
    assert "keys and values in q5_1" in json.dumps(reasons)


def test_the_metrics_of_a_server_are_read(served, capfd):
    client, words = served
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            client.wait()
            client.answers()
            assert main(["monitor", "--log", f"{client.url}/metrics", "--once", "--json"]) == 0
        finally:
            server.terminate()
    state = json.loads(capfd.readouterr().out.splitlines()[0])
    assert state["tokens"] == REQUESTS * OUTPUT
    assert state["prompt_tokens_per_second"] > 0
    assert 0 < state["time_per_output_token_seconds"] < LONGEST
