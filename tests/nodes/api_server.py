"""A real API server of Kubernetes on this machine, with no node behind it: for tests of what asks one through kubectl.

It is ``kube-apiserver`` on an ``etcd``, where both are installed, in a folder of its own. Nodes and pods are objects
that tests create; nothing runs containers. Nothing outside the folder is touched, and nothing runs on after ``stop``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.nodes.slurm_cluster import NotStartedError, free_ports, program

PATIENCE = 180.0
USERS: Mapping[str, str] = {"admin": "system:masters", "guest": "guests"}
"""Contexts of the configuration, and the group of each: one who may do everything, and one who may do nothing."""


@dataclass
class ApiServer:
    """A server that runs, with contexts ``admin``, ``guest`` and, of nobody it knows, ``stranger``."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def configuration(self) -> Path:
        return self.folder / "kubeconfig"

    def kubectl(self, *words: str, given: Mapping[str, Any] | Sequence[Any] | str = "") -> str:
        """What kubectl prints for the administrator; an error of the test where it fails."""
        text = given if isinstance(given, str) else json.dumps(given)
        done = subprocess.run(
            (program("kubectl"), f"--kubeconfig={self.configuration}", *words),
            check=False, input=text, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def create(self, given: Mapping[str, Any]) -> None:
        """Create an object, with its status, which the server takes only by itself."""
        self.kubectl("create", "--filename=-", given=given)
        if "status" in given:
            self.set_status(given["kind"], given["metadata"]["name"], given["status"])

    def set_status(self, kind: str, name: str, status: Mapping[str, Any]) -> None:
        """Say how an object stands, as the controller or the node says it that is not there."""
        patch = json.dumps({"status": status})
        self.kubectl("patch", kind, name, "--subresource=status", "--type=merge", f"--patch={patch}")

    def hang(self) -> None:
        """Let it answer nothing, as one does whose disk is lost."""
        os.killpg(self.daemons["kube-apiserver"].pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.killpg(self.daemons["kube-apiserver"].pid, signal.SIGCONT)

    def start(self) -> None:
        """Start both; NotStartedError says which did not and what it said."""
        etcd, peers, port = free_ports(3)
        store = f"http://127.0.0.1:{etcd}"
        key = self.folder / "key.pem"
        subprocess.run(
            (program("openssl"), "genrsa", "-out", str(key), "2048"), check=True, capture_output=True, timeout=60
        )
        tokens = (f"{user}-token,{user},{user},{group}\n" for user, group in USERS.items())
        (self.folder / "tokens").write_text("".join(tokens))
        self.configuration.write_text(json.dumps(_configuration(port)))
        self._daemon(
            "etcd", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}", f"--listen-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-cluster=default=http://127.0.0.1:{peers}",
        )  # fmt: skip
        self._daemon(
            "kube-apiserver", f"--etcd-servers={store}", "--bind-address=127.0.0.1", f"--secure-port={port}",
            f"--cert-dir={self.folder}", f"--token-auth-file={self.folder}/tokens", "--authorization-mode=RBAC",
            "--service-account-issuer=https://127.0.0.1", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--disable-admission-plugins=ServiceAccount",
        )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while not self._is_ready():
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            if ended or time.monotonic() > end:
                raise NotStartedError(f"{', '.join(ended) or 'the API server'}: {self._last_words()}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End both."""
        for daemon in self.daemons.values():
            if daemon.poll() is None:
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()

    def _is_ready(self) -> bool:
        words = (program("kubectl"), f"--kubeconfig={self.configuration}", "get", "namespace/default")
        return subprocess.run(words, check=False, capture_output=True, timeout=PATIENCE).returncode == 0

    def _daemon(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.out").open("wb") as out:
            self.daemons[name] = subprocess.Popen(
                (program(name), *words), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, cwd=self.folder,
            )  # fmt: skip

    def _last_words(self) -> str:
        texts = ((self.folder / f"{name}.out").read_text(errors="replace").strip() for name in self.daemons)
        return "; ".join(text.splitlines()[-1][:200] for text in texts if text) or "nothing was said"


def _configuration(port: int) -> Mapping[str, Any]:
    users = (*USERS, "stranger")
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": users[0],
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": f"{user}-token"}} for user in users],
        "contexts": [{"name": user, "context": {"cluster": "here", "user": user}} for user in users],
    }
