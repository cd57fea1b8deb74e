"""Memory modules as the firmware's tables or the memory controllers list them: speed, channels, bandwidth."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import MemoryModule, MemoryModules
from capacity_tui.engine.printable import printable

TABLES = "/sys/firmware/dmi/tables/DMI"
CONTROLLERS = "/sys/devices/system/edac/mc"
MEMORY_DEVICE, END_OF_TABLE = 17, 127  # SMBIOS structure types
# SMBIOS specification 3.7, table 77: memory types that computers of today have.
TYPES = {
    0x18: "DDR3",
    0x1A: "DDR4",
    0x1B: "LPDDR",
    0x1D: "LPDDR3",
    0x1E: "LPDDR4",
    0x20: "HBM",
    0x21: "HBM2",
    0x22: "DDR5",
    0x23: "LPDDR5",
    0x24: "HBM3",
}
MEBIBYTE, KIBIBYTE = 1 << 20, 1 << 10


def probe_memory_modules(host: Host) -> MemoryModules:
    """Return the modules, the channels they fill and the bandwidth those carry together in bytes a second."""
    modules = _from_firmware(host).or_else(_from_controllers(host))
    if modules.value is None:
        absent = missing(modules.source, modules.reason)
        return MemoryModules(absent, absent, absent)
    channels = len({module.channel for module in modules.value})
    return MemoryModules(modules, detected(channels, modules.source), _bandwidth(modules.value, modules.source))


def parse_memory_devices(table: bytes) -> tuple[MemoryModule, ...]:
    """Return the filled slots in an SMBIOS table; what the firmware leaves out is None."""
    modules = (_module(area, texts) for kind, area, texts in _structures(table) if kind == MEMORY_DEVICE)
    return tuple(module for module in modules if module is not None)


def _structures(table: bytes) -> Iterator[tuple[int, bytes, Sequence[str]]]:
    position = 0
    while position + 4 <= len(table):
        kind, length = table[position], table[position + 1]
        end = table.find(b"\0\0", position + length)
        if length < 4 or end < 0 or kind == END_OF_TABLE:
            return
        texts = table[position + length : end].split(b"\0")
        yield kind, table[position : position + length], [printable(text.decode("ascii", "replace")) for text in texts]
        position = end + 2


def _module(area: bytes, texts: Sequence[str]) -> MemoryModule | None:
    """Return one memory device; offsets as in SMBIOS specification 3.7, section 7.18."""
    size = _word(area, 0x0C)
    if not size or size == 0xFFFF:
        return None
    if size == 0x7FFF:  # too large for this field: in mebibytes, further down
        size_bytes = (struct.unpack_from("<I", area, 0x1C)[0] & 0x7FFFFFFF) * MEBIBYTE
    else:
        size_bytes = (size & 0x7FFF) * (KIBIBYTE if size & 0x8000 else MEBIBYTE)
    speed = _word(area, 0x20) or _word(area, 0x15)  # configured, else rated
    width = _word(area, 0x0A)
    slot, bank = _text(area, 0x10, texts), _text(area, 0x11, texts)
    kind = TYPES.get(area[0x12] if len(area) > 0x12 else 0, "memory")
    known_speed = speed if speed and speed != 0xFFFF else None
    return MemoryModule(
        size_bytes, kind, known_speed, width if width and width != 0xFFFF else None, _channel(slot, bank)
    )


def _channel(slot: str, bank: str) -> str:
    """Return the channel that slot names such as ``P0 CHANNEL A`` or ``ChannelA-DIMM0`` hold, else the slot itself."""
    for text in (bank, slot):
        node = re.search(r"\b(?:P|NODE|CPU|PROC)\s*_?(\d)", text, re.IGNORECASE)
        channel = re.search(r"CHANNEL\s*_?([A-Z0-9])|CH(\d)|DIMM_?([A-Z])\d", text, re.IGNORECASE)
        if channel:
            return f"{node[1] if node else 0}/{next(part for part in channel.groups() if part)}"
    return f"{slot} {bank}".strip()


def _word(area: bytes, offset: int) -> int | None:
    return int(struct.unpack_from("<H", area, offset)[0]) if len(area) >= offset + 2 else None


def _text(area: bytes, offset: int, texts: Sequence[str]) -> str:
    number = area[offset] if len(area) > offset else 0
    return texts[number - 1].strip() if 0 < number <= len(texts) else ""


def _from_firmware(host: Host) -> Fact[tuple[MemoryModule, ...]]:
    try:
        modules = parse_memory_devices(host.files.read(TABLES))
    except PermissionError:
        return missing(TABLES, "only root may read the firmware's tables")
    except (OSError, struct.error):
        return missing(TABLES, "this machine shows no firmware tables")
    return detected(modules, TABLES) if modules else missing(TABLES, "the firmware lists no modules")


def _from_controllers(host: Host) -> Fact[tuple[MemoryModule, ...]]:
    """Return the modules that memory controllers with error correction list; their speed is unknown."""
    modules = []
    for controller in host.names(CONTROLLERS):
        for name in host.names(f"{CONTROLLERS}/{controller}"):
            base = f"{CONTROLLERS}/{controller}/{name}"
            size = host.integer(f"{base}/size").value if re.fullmatch(r"(dimm|rank)\d+", name) else None
            if size:
                slot = host.text(f"{base}/dimm_location").value or name
                channel = re.search(r"channel (\d+)", slot)
                kind = (host.text(f"{base}/dimm_mem_type").value or "memory").rpartition("-")[2]
                where = f"{controller}/{channel[1] if channel else slot}"
                modules.append(MemoryModule(size * MEBIBYTE, kind, None, None, where))
    return (
        detected(tuple(modules), CONTROLLERS)
        if modules
        else missing(CONTROLLERS, "no memory controller lists its modules")
    )


def _bandwidth(modules: tuple[MemoryModule, ...], source: str) -> Fact[float]:
    """Return bytes a second of all channels: transfers a second times the width of one."""
    channels = {module.channel: module for module in modules}.values()
    if any(module.speed_mts is None or module.width_bits is None for module in channels):
        return missing(source, "speed or width of the modules is not told")
    rates = ((module.speed_mts or 0) * 1e6 * (module.width_bits or 0) / 8 for module in channels)
    return detected(sum(rates), source)
