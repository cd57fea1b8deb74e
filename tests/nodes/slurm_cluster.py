"""A real Slurm of several nodes on this machine, in a folder of its own: for tests of what asks Slurm or gives it work.

It is made of Debian's packages slurmctld, slurmd and munge, and with accounting of slurmdbd and mariadb-server. Nodes
are daemons that share this machine: they take any number of processors and GPUs that their configuration names, though
none is there. Nothing outside the folder is touched, and nothing of it runs on after ``stop``.
"""

from __future__ import annotations

import getpass
import os
import platform
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "sinfo")
ACCOUNTING_PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacct")
GPU_NODES = ("gpu1", "gpu2", "gpu3")
PROCESSOR_NODES = ("cpu1",)
GPUS_PER_NODE = 8
PATIENCE = 240.0

CONFIGURATION = """\
ClusterName=fixture
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={controller_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed_jobs
{accounting}
TopologyPlugin=topology/tree
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=2
SlurmdTimeout=5
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
NodeName=gpu[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port={gpu_ports} CPUs=16 RealMemory=131072 Gres=gpu:h100:8
NodeName=cpu1 NodeHostname={host} NodeAddr=127.0.0.1 Port={processor_port} CPUs=4 RealMemory=16384
PartitionName=gpu Nodes=gpu[1-3] Default=YES MaxTime=2-00:00:00 State=UP PriorityTier=10
PartitionName=spot Nodes=gpu[1-3] MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=cpu Nodes=cpu1 MaxTime=1:00:00 State=UP
"""
ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database_port}
AccountingStoragePass={folder}/munge.socket
AccountingStorageTRES=gres/gpu"""
DATABASE_DAEMON = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={database_port}
SlurmUser={user}
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StoragePass=none
StorageLoc=slurm_accounting
"""
TOPOLOGY = """\
SwitchName=rack1 Nodes=gpu[1-2]
SwitchName=rack2 Nodes=gpu3,cpu1
SwitchName=fabric Switches=rack[1-2]
"""


class NotStartedError(Exception):
    """Why there can be no Slurm here: the reason with which tests skip."""


def program(name: str) -> str:
    """The path of a program, also where only administrators look for it; NotStartedError where it is not installed."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise NotStartedError(f"{name} is not installed ")
    return found


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nothing listened on just now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@dataclass
class SlurmCluster:
    """A Slurm that runs: where it lies, and what a process needs in its environment to talk to it."""

    folder: Path
    accounting: bool
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *words: str, limit: float = PATIENCE) -> str:
        """What a command of Slurm prints; an error of the test where it fails."""
        done = self._ask(*words, limit=limit)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def stop_node(self, name: str) -> None:
        """Let the daemon of one node hang, as a node does that has run out of memory or lost its disk."""
        os.killpg(self.daemons[name].pid, signal.SIGSTOP)

    def continue_node(self, name: str) -> None:
        os.killpg(self.daemons[name].pid, signal.SIGCONT)

    def begin_again(self, job: str) -> None:
        """Let a job that was put back in the queue begin as soon as its nodes take it, not two minutes later.

        Nodes refuse a job that is granted to them in the second in which they had to end it; Slurm then holds it.
        """
        time.sleep(2.1)
        self._ask("scontrol", "release", job)
        self._ask("scontrol", "update", f"JobId={job}", "StartTime=now")

    def cancel_all(self) -> None:
        """Take every job out of the queue, and wait until none of them holds a node."""
        self.run("scancel", "--user", getpass.getuser())
        self.wait_for("the end of all jobs", lambda: not self.run("squeue", "-h", "-o", "%T").strip())

    def wait_for(self, what: str, true: Callable[[], bool], limit: float = PATIENCE) -> None:
        end = time.monotonic() + limit
        while not true():
            if time.monotonic() > end:
                raise NotStartedError(f"Slurm: {what} did not come within {limit:.0f} s ({self._last_words()})")
            time.sleep(0.05)

    def start(self) -> None:
        """Start every daemon; NotStartedError says which did not and what it said."""
        for name in PROGRAMS + (ACCOUNTING_PROGRAMS if self.accounting else ()):
            program(name)
        self._configure()
        self._daemon("munged", "--foreground", "--force", *self._munge_options())
        self.wait_for("munge", (self.folder / "munge.socket").exists)
        if self.accounting:
            self._start_database()
        self._daemon("slurmctld", "-D")
        for node in GPU_NODES + PROCESSOR_NODES:
            self._daemon("slurmd", "-D", "-N", node, key=node)
        self.wait_for("all nodes", self._all_idle)

    def stop(self) -> None:
        """End every daemon, and what jobs have left running."""
        for one in self.daemons.values():
            _kill_group(one.pid)
            one.wait()
        mine = self.environment["SLURM_CONF"]
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and process.environ().get("SLURM_CONF") == mine:
                    process.kill()
            except psutil.Error:
                continue

    def _configure(self) -> None:
        ports = free_ports(6)
        values = {
            "folder": self.folder,
            "host": platform.node().partition(".")[0],
            "user": getpass.getuser(),
            "controller_port": ports[0],
            "gpu_ports": ",".join(map(str, ports[1:4])),
            "processor_port": ports[4],
            "database_port": ports[5],
        }
        accounting = ACCOUNTING.format(**values) if self.accounting else "AccountingStorageType=accounting_storage/none"
        for name in ("state", "devices", *(f"spool/{node}" for node in GPU_NODES + PROCESSOR_NODES)):
            (self.folder / name).mkdir(parents=True)
        for number in range(GPUS_PER_NODE):
            (self.folder / "devices" / f"gpu{number}").touch()
        gpus = f"NodeName=gpu[1-3] Name=gpu Type=h100 File={self.folder}/devices/gpu[0-7]\n"
        self._write("munge.key", os.urandom(1024).hex())
        self._write("slurm.conf", CONFIGURATION.format(**values, accounting=accounting))
        self._write("slurmdbd.conf", DATABASE_DAEMON.format(**values))
        self._write("gres.conf", gpus)
        self._write("topology.conf", TOPOLOGY)
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o600 if name in ("munge.key", "slurmdbd.conf") else 0o644)

    def _munge_options(self) -> list[str]:
        files = {
            "key-file": "munge.key",
            "socket": "munge.socket",
            "pid-file": "munge.pid",
            "log-file": "munge.log",
            "seed-file": "munge.seed",
        }
        return [f"--{option}={self.folder / name}" for option, name in files.items()]

    def _start_database(self) -> None:
        data, door = self.folder / "database", self.folder / "database.socket"
        user = getpass.getuser()
        install = (program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", f"--user={user}")
        done = subprocess.run(install, check=False, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise NotStartedError(f"mariadb-install-db: {(done.stderr or done.stdout).strip()[-200:]}")
        self._daemon(
            *(
                "mariadbd",
                "--no-defaults",
                f"--datadir={data}",
                f"--socket={door}",
                "--skip-networking",
                f"--user={user}",
            ),
            *("--skip-grant-tables", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"),
        )
        self.wait_for("the database", door.exists)
        self._daemon("slurmdbd", "-D", surroundings={"MYSQL_UNIX_PORT": str(door)})
        self.wait_for("accounting", lambda: self._ask("sacctmgr", "-n", "list", "cluster").returncode == 0)

    def _all_idle(self) -> bool:
        states = self._ask("sinfo", "-h", "-N", "-o", "%N %T").stdout.split()[1::2]
        return bool(states) and set(states) == {"idle"}

    def _ask(self, *words: str, limit: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (program(words[0]), *words[1:]),
            check=False,
            capture_output=True,
            text=True,
            timeout=limit,
            env=self._surroundings(),
        )

    def _surroundings(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**os.environ, **self.environment, **(more or {})}

    def _daemon(self, name: str, *words: str, key: str = "", surroundings: Mapping[str, str] | None = None) -> None:
        with (self.folder / f"{key or name}.out").open("wb") as out:
            self.daemons[key or name] = subprocess.Popen(
                (program(name), *words), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, cwd=self.folder, env=self._surroundings(surroundings),
            )  # fmt: skip

    def _last_words(self) -> str:
        """What daemons that have ended said last, or all of them where none has."""
        ended = [name for name, one in self.daemons.items() if one.poll() is not None]
        texts = {
            name: (self.folder / f"{name}.out").read_text(errors="replace").strip() for name in ended or self.daemons
        }
        return (
            "; ".join(f"{name}: {text.splitlines()[-1]}" for name, text in texts.items() if text) or "nothing was said"
        )


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
