"""Disks by mount point, and swap: kind, size and free space."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.machine.facts import Fact, assumed, detected, missing
from capacity_tui.engine.machine.known_devices import match_disk
from capacity_tui.engine.machine.machine import Disk, DiskKind, Swap, SwapKind
from capacity_tui.engine.machine.main_memory import meminfo
from capacity_tui.engine.machine.probing import Host, Running, Space
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import GIGA

MOUNTS = "/proc/self/mountinfo"
SHARES = ("afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "smb3", "wekafs")
NETWORK_FILE_SYSTEMS = frozenset({*SHARES, "9p", "afpfs", "smbfs", "virtiofs"})
LOCAL_FUSE = frozenset({"fuse.ntfs", "fuse.ntfs-3g", "fuse.exfat", "fuse.mergerfs", "fuse.fuse-overlayfs"})
POOLS = frozenset({"zfs", "apfs", "bcachefs"})  # their device field names a pool, not a disk
PLUMBING = re.compile(r"/(proc|sys|run|etc|boot|snap|dev(?!/shm$))(/|$)|/System/Volumes/(?!Data$)")
ANSWER_SECONDS = 1.0  # a share whose server is gone blocks every request for its size


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system; ``number`` is the kernel's ``major:minor``, empty if unknown."""

    point: str
    device: str
    number: str
    file_system: str

    @property
    def remote(self) -> bool:
        """Whether the data is on another machine."""
        fuse = self.file_system.startswith("fuse.") and self.file_system not in LOCAL_FUSE
        return self.file_system in NETWORK_FILE_SYSTEMS or fuse


def probe_disks(host: Host) -> tuple[Disk, ...]:
    """Return one entry a file system, at its shortest mount point; empty ones are left out."""
    mounts = _macos_mounts() if host.system == "Darwin" else _mounts(host)
    probes = [Running(mount.point, partial(host.space, mount.point), ANSWER_SECONDS) for mount in mounts]
    disks = (_disk(host, mount, _size(running)) for mount, running in zip(mounts, probes, strict=True))
    return tuple(disk for disk in disks if disk.total_bytes.value != 0)


def is_on_a_share(path: Path, host: Host) -> bool:
    """Return whether a file, or the place of a new one, is on another machine."""
    mounts = _macos_mounts() if host.system == "Darwin" else _all_mounts(host)
    resolved = path.resolve()
    above = [mount for mount in mounts if resolved.is_relative_to(mount.point)]
    # A later mount hides an earlier one at the same point.
    return bool(above) and max(enumerate(above), key=lambda entry: (len(entry[1].point), entry[0]))[1].remote


def device_kind(host: Host, device: str) -> Fact[DiskKind]:
    """Return the kind of the disk below a block device such as ``/dev/sda2``."""
    mount = Mount("", device, "", "")
    block = _block_device(host, mount)
    return missing(device, "no block device known for it") if block is None else _kind_and_model(host, mount, block)[0]


def _size(running: Running[Space]) -> Fact[Space]:
    space, probe = running.wait()
    return missing("statvfs", probe.detail) if space is None else detected(space, "statvfs")


def _disk(host: Host, mount: Mount, space: Fact[Space]) -> Disk:
    block = _block_device(host, mount)
    kind, model = _kind_and_model(host, mount, block)
    total, free = space.map(lambda size: size.total_bytes), space.map(lambda size: size.free_bytes)
    return Disk(mount.point, mount.device, mount.file_system, kind, total, free, model)


def _mounts(host: Host) -> tuple[Mount, ...]:
    uppermost: dict[str, Mount] = {}
    for mount in _all_mounts(host):
        if PLUMBING.match(mount.point) or not _stores_data(mount):
            continue
        uppermost[mount.point] = mount  # a later mount hides an earlier one at the same point
    shortest: dict[str, Mount] = {}
    for mount in sorted(uppermost.values(), key=lambda mount: (len(mount.point), mount.point)):
        shortest.setdefault(mount.number, mount)
    return tuple(sorted(shortest.values(), key=lambda mount: mount.point))


def _all_mounts(host: Host) -> tuple[Mount, ...]:
    lines = (host.text(MOUNTS).value or "").splitlines()
    return tuple(mount for line in lines if (mount := _parse_mount(line)) is not None)


def _parse_mount(line: str) -> Mount | None:
    before, _, after = line.partition(" - ")
    fields, described = before.split(), after.split()
    if len(fields) < 5 or len(described) < 2:
        return None
    point = fields[4].replace("\\040", " ")
    return Mount(point, described[1], fields[2], described[0])


def _stores_data(mount: Mount) -> bool:
    if mount.file_system in ("squashfs", "iso9660"):
        return False  # read-only images
    memory_disk = mount.file_system == "tmpfs" and mount.point in ("/dev/shm", "/tmp")  # noqa: S108
    overlay = mount.file_system == "overlay" and mount.point == "/"
    return memory_disk or overlay or mount.remote or mount.device.startswith("/dev/") or mount.file_system in POOLS


def _block_device(host: Host, mount: Mount) -> PurePosixPath | None:
    """Return the sysfs directory of the whole disk below a mount, through partitions and mappings."""
    for link in (f"/sys/dev/block/{mount.number}", f"/sys/class/block/{Path(mount.device).name}"):
        target = host.target(link)
        if target is not None and mount.device.startswith("/dev/"):
            return _whole_disk(host, target)
    return None


def _whole_disk(host: Host, device: PurePosixPath) -> PurePosixPath:
    if host.exists(f"{device}/partition"):
        device = device.parent
    below = next(iter(host.names(f"{device}/slaves")), None)
    parent = below and host.target(f"{device}/slaves/{below}")
    return _whole_disk(host, parent) if parent else device


def _kind_and_model(host: Host, mount: Mount, block: PurePosixPath | None) -> tuple[Fact[DiskKind], Fact[str]]:
    nothing = missing(MOUNTS, "not a disk")
    if mount.remote:
        return detected("network", MOUNTS), nothing
    if mount.file_system == "tmpfs":
        return detected("tmpfs", MOUNTS), nothing
    if mount.file_system == "overlay":
        return detected("overlay", MOUNTS), nothing
    if block is None:
        reason = "no block device known for it"
        return missing(MOUNTS, reason), missing(MOUNTS, reason)
    base = "/sys/class/block/" + block.name
    model = _read(host, block / "device/model", f"{base}/device/model", "the disk names no model")
    return _kind(host, block, base, model), model


def _kind(host: Host, block: PurePosixPath, base: str, model: Fact[str]) -> Fact[DiskKind]:
    known = match_disk(model.value or "")
    if known is not None:
        return detected(known, model.source)
    if block.name.startswith("nvme"):
        return detected("NVMe", base)
    if block.name.startswith(("vd", "xvd")):
        return missing(base, "a virtual disk; only its host knows")
    rotational = _read(host, block / "queue/rotational", f"{base}/queue/rotational", "not reported")
    return rotational.map(lambda flag: "HDD" if flag == "1" else "SSD")


def _read(host: Host, path: PurePosixPath, source: str, otherwise: str) -> Fact[str]:
    text = host.text(str(path)).value
    return missing(source, otherwise) if text is None else detected(text, source)


def _macos_mounts() -> tuple[Mount, ...]:
    import psutil  # noqa: PLC0415 - only where /proc is missing

    partitions = psutil.disk_partitions(all=False)
    mounts = (Mount(part.mountpoint, part.device, "", part.fstype) for part in partitions)
    return tuple(mount for mount in mounts if not PLUMBING.match(mount.point))


RATES = "storage_tiers.yaml"
SWAPS = "/proc/swaps"
SLOWEST_FIRST: tuple[SwapKind, ...] = ("HDD", "file", "SSD", "NVMe", "compressed memory")


def probe_swap(host: Host) -> Swap:
    """Return total and free swap space in bytes, and the kind of disk below it."""
    if host.system == "Darwin":
        usage = host.command("sysctl", "-n", "vm.swapusage")
        total, free = _macos_swap(usage, "total"), _macos_swap(usage, "free")
        kind: Fact[SwapKind] = detected("file", "macOS swaps to files on its system disk")
        return Swap(total, free, kind, _bandwidth(kind))
    kind = _swap_kind(host)
    return Swap(meminfo(host, "SwapTotal"), meminfo(host, "SwapFree"), kind, _bandwidth(kind))


def _bandwidth(kind: Fact[SwapKind]) -> Fact[float]:
    """Return what such a disk usually reads in any order, as pages come back."""
    if kind.value is None:
        return missing(kind.source, kind.reason)
    rate = _usual_rates().get(kind.value)
    if rate is None:
        return missing(f"profiles/{RATES}", f"no usual rate of {kind.value}")
    return assumed(rate, f"what {kind.value} disks usually reads in any order (profiles/{RATES})")


@lru_cache(maxsize=1)
def _usual_rates() -> Mapping[str, float]:
    """Return bytes a second by kind of disk."""
    rows: Mapping[str, Mapping[str, object]] = parse_shipped(RATES)
    return {
        str(row["disk_kind"]): float(str(row["any_order_gbs"])) * GIGA for row in rows.values() if "disk_kind" in row
    }


def _swap_kind(host: Host) -> Fact[SwapKind]:
    lines = (line.split() for line in (host.text(SWAPS).value or "").splitlines()[1:])
    areas = [words for words in lines if len(words) >= 3]
    if not areas:
        return missing(SWAPS, "no swap space")
    kinds = [_area_kind(host, device, kind) for device, kind, *_ in areas]
    known = [kind for kind in kinds if kind is not None]
    if not known:
        return missing(SWAPS, "the kind of the disk below is not known")
    return detected(min(known, key=SLOWEST_FIRST.index), SWAPS)


def _area_kind(host: Host, device: str, kind: str) -> SwapKind | None:
    name = device.rpartition("/")[2]
    if name.startswith("zram"):
        return "compressed memory"
    if kind == "file":
        return "file"
    disk = device_kind(host, device).value
    return disk if disk in ("NVMe", "SSD", "HDD") else None


def _macos_swap(usage: Fact[str], key: str) -> Fact[int]:
    """Return one value of ``total = 2048.00M  used = ...  free = ...`` in bytes."""
    if usage.value is None:
        return missing(usage.source, usage.reason)
    words = usage.value.replace("=", " ").split()
    if key not in words[:-1]:
        return missing(usage.source, f"no {key} in the answer")
    return detected(int(float(words[words.index(key) + 1].rstrip("M")) * 1024 * 1024), usage.source)
