"""An ssh server of our own on this machine, with a key of its own: hosts for tests of what reaches nodes by ssh."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.nodes.slurm_cluster import NotStartedError, free_ports, program

PATIENCE = 10.0
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
SetEnv PATH={path}
"""
CLIENT = """\
Host {names}
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking accept-new
Host gone
  HostName 127.0.0.1
  Port {nothing}
"""


class SshHost:
    """One server that answers under several names, as ``ssh -F`` of its configuration knows them.

    Args:
        folder: where all of it lies.
        names: of the hosts it stands for.
    """

    def __init__(self, folder: Path, names: tuple[str, ...] = ("n1", "n2", "n3")) -> None:
        self.folder, self.names = folder, names
        self.client = folder / "config"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server; NotStartedError where that cannot be."""
        server, keygen = program("sshd"), program("ssh-keygen")
        program("ssh")
        for key in ("host", "user"):
            subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key)], check=True)
        port, nothing = free_ports(2)
        told = {"folder": self.folder, "port": port, "nothing": nothing, "user": getpass.getuser()}
        # As where the environment of the user is active on every host.
        told["path"] = os.pathsep.join((str(Path(sys.executable).parent), *os.defpath.split(os.pathsep)))
        (self.folder / "sshd_config").write_text(SERVER.format(**told))
        self.client.write_text(CLIENT.format(names=" ".join(self.names), **told))
        if getpass.getuser() == "root":
            Path("/run/sshd").mkdir(exist_ok=True)  # the server refuses to start without it
        with (self.folder / "log").open("wb") as log:
            command = [server, "-D", "-e", "-f", str(self.folder / "sshd_config")]
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            with socket.socket() as trying:
                if trying.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise NotStartedError(f"sshd did not start: {(self.folder / 'log').read_text()[-300:]}")

    def stop(self) -> None:
        """Stop the server and whatever it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def command(self) -> Path:
        """A program that is ``ssh`` with this configuration, as a user's own would be found in their home."""
        place = self.folder / "bin" / "ssh"
        place.parent.mkdir(exist_ok=True)
        place.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.client} "$@"\n')
        place.chmod(0o755)
        return place
