"""What is seen of a run, for Prometheus and as JSON lines."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from capacity_tui.engine.errors import CapacityError, MissingPartError, StorageError
from capacity_tui.engine.runs import Outlets, metrics_export
from capacity_tui.engine.runs.metrics_export import Gauge, MetricsServer, serving_address

GAUGES = (
    Gauge("memory_bytes", 5e9),
    Gauge("gpu_power_watts", 640, {"gpu": "0"}),
    Gauge("gpu_power_watts", 650, {"gpu": "1"}),
)


@pytest.fixture
def serve():
    opened = []

    def server(address: str = "0", token: str = "") -> MetricsServer:
        made = MetricsServer(serving_address(address), token)
        opened.append(made)
        made.start()
        made.show(GAUGES)
        return made

    yield server
    for each in opened:
        each.close()


def read(server: MetricsServer, path: str = "/metrics", **headers: str) -> str:
    asked = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    with urllib.request.urlopen(asked, timeout=5) as answer:
        return answer.read().decode()


def test_prometheus_reads_every_number_with_its_labels(serve):
    server = serve()
    families = {family.name: family for family in text_string_to_metric_families(read(server))}
    assert families["capacity_tui_memory_bytes"].samples[0].value == 5e9
    power = families["capacity_tui_gpu_power_watts"].samples
    assert {(each.labels["gpu"], each.value) for each in power} == {("0", 640), ("1", 650)}
    server.show(())
    assert "capacity_tui" not in read(server)


def test_who_shows_no_token_learns_nothing(serve):
    server = serve(token="secret")
    for headers in ({}, {"Authorization": "Bearer guess"}):
        with pytest.raises(urllib.error.HTTPError) as refused:
            read(server, **headers)
        with refused.value:
            assert refused.value.code == 401
            assert b"capacity_tui" not in refused.value.read()
    assert "capacity_tui_memory_bytes" in read(server, Authorization="Bearer secret")


@pytest.mark.parametrize(
    ("host", "code"),
    [("evil.example", 421), ("evil.example:{port}", 421), ("localhost:{port}", 200), ("127.0.0.1", 200)],
)
def test_pages_of_others_cannot_read_what_is_served_here(serve, host, code):
    server = serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("GET", "/metrics", headers={"Host": host.format(port=server.port)})
    answer = connection.getresponse()
    assert (answer.status, b"capacity_tui" in answer.read()) == (code, code == 200)
    connection.close()


def test_readers_that_leave_are_not_spoken_of(serve, capfd):
    server = serve()
    server.show(Gauge("memory_bytes", number, {"gpu": str(number)}) for number in range(20_000))
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            reader.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert "capacity_tui_memory_bytes" in read(server)
    server.close()
    assert capfd.readouterr().err == ""


def test_nothing_but_metrics_is_served(serve):
    with pytest.raises(urllib.error.HTTPError) as refused:
        read(serve(), "/etc/passwd")
    with refused.value:
        assert refused.value.code == 404


def test_others_can_read_only_with_a_token(serve, monkeypatch):
    monkeypatch.delenv(metrics_export.TOKEN_VARIABLE, raising=False)
    with pytest.raises(CapacityError, match="anyone could read"):
        MetricsServer(serving_address("0.0.0.0:0"))
    assert serving_address("9100").is_loopback
    assert serving_address("[::1]:9100").is_loopback
    assert not serving_address("example.org:9100").is_loopback
    monkeypatch.setenv(metrics_export.TOKEN_VARIABLE, "secret")
    MetricsServer(serving_address("0.0.0.0:0")).close()


@pytest.mark.parametrize("text", ["", "x", ":1", "localhost:", "70000", "-1"])
def test_an_address_that_cannot_be_is_refused(text):
    with pytest.raises(CapacityError):
        serving_address(text)


def test_a_port_that_is_taken_is_said(serve):
    with pytest.raises(CapacityError, match="cannot be served"):
        MetricsServer(serving_address(str(serve().port)))


def test_without_the_extra_its_name_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    with pytest.raises(MissingPartError) as missing:
        MetricsServer(serving_address("0"))
    assert "prometheus-client<" in missing.value.hint


def test_lines_are_whole_and_follow_those_that_are_there(tmp_path):
    file = tmp_path / "looks.jsonl"
    for number in range(2):
        outlets = Outlets(file, None)
        outlets.start()
        outlets.show({"look": number}, ())
        outlets.close()
    assert [json.loads(line)["look"] for line in file.read_text().splitlines()] == [0, 1]
    with pytest.raises(StorageError):
        Outlets(tmp_path, None)


def test_a_full_disk_ends_the_lines_alone():
    outlets = Outlets(metrics_export.Path("/dev/full"), "0")
    outlets.show({"look": 1}, GAUGES)
    outlets.show({"look": 2}, GAUGES)
    assert len(outlets.problems) == 1
    assert "cannot be written" in outlets.problems[0]
    outlets.close()
