"""From what drivers call devices to catalogue ids: never a silent guess."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.machine import device_names
from capacity_tui.engine.machine.known_devices import match_accelerator, match_cpu, match_disk, match_pci

MIB = 1 << 20

KNOWN = [
    ("NVIDIA RTX 5000 Ada Generation", 32760, "rtx-5000-ada"),
    ("NVIDIA GeForce RTX 5050 Laptop GPU", 8151, "rtx-5050-laptop"),
    ("NVIDIA A100X", 81920, "a100x"),
    ("NVIDIA T1200 Laptop GPU", 4096, "t1200-laptop"),
    ("Intel(R) Data Center GPU Max 1100", 49152, "max-1100"),
    ("Tesla P40", 22919, "p40"),
    ("NVIDIA L20", 46068, "l20"),
    ("Quadro P1000", 4040, "quadro-p1000"),
    ("Quadro M6000 24GB", 24576, "quadro-m6000-24gb"),
    ("NVIDIA T1000 8GB", 8192, "t1000-8gb"),
    ("NVIDIA RTX A1000", 8188, "rtx-a1000"),
    ("NVIDIA RTX A5000 Laptop GPU", 16384, "rtx-a5000-laptop"),
    ("NVIDIA GeForce RTX 2050", 4096, "rtx-2050-laptop"),
    ("NVIDIA GeForce GTX 970", 4096, "gtx-970"),
    ("NVIDIA A100-SXM4-80GB", 81920, "a100-sxm-80gb"),
    ("NVIDIA A100-SXM4-80GB", 81251, "a100-sxm-80gb"),
    ("A100-SXM4-40GB", 40536, "a100-sxm-40gb"),
    ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm-40gb"),
    ("NVIDIA A100-PCIE-40GB", 40960, "a100-pcie-40gb"),
    ("NVIDIA A100 80GB PCIe", 81920, "a100-pcie-80gb"),
    ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm-80gb"),
    ("NVIDIA H100 PCIe", 81559, "h100-pcie-80gb"),
    ("NVIDIA H100 NVL", 95830, "h100-nvl"),
    ("NVIDIA H200", 143771, "h200-sxm"),
    ("NVIDIA H200 NVL", 143771, "h200-nvl"),
    ("NVIDIA H20", 97871, "h20"),
    ("NVIDIA H20-3e", 143771, "h20-141gb"),
    ("NVIDIA H800", 81559, "h800-sxm-80gb"),
    ("NVIDIA A800-SXM4-80GB", 81920, "a800-sxm-80gb"),
    ("NVIDIA A800 80GB PCIe", 81920, "a800-pcie-80gb"),
    ("Tesla V100S-PCIE-32GB", 32510, "v100s-pcie-32gb"),
    ("NVIDIA GeForce RTX 4090 D", 24564, "rtx-4090-d"),
    ("NVIDIA RTX A5500", 24564, "rtx-a5500"),
    ("NVIDIA RTX A4500", 20470, "rtx-a4500"),
    ("Quadro RTX 5000", 16384, "quadro-rtx-5000"),
    ("NVIDIA GeForce GTX 1070", 8192, "gtx-1070"),
    ("NVIDIA GeForce GTX 1050 Ti", 4096, "gtx-1050-ti"),
    ("NVIDIA GH200 480GB", 97871, "gh200-96gb"),
    ("NVIDIA GH200 144G HBM3e", 145920, "gh200-144gb"),
    ("NVIDIA B200", 183359, "b200-sxm"),
    ("NVIDIA GB200", 189471, "gb200"),
    ("NVIDIA B300 SXM6 AC", 275040, "b300-sxm"),
    ("NVIDIA GB300", 284208, "gb300"),
    ("NVIDIA GB10", None, "gb10-dgx-spark"),
    ("NVIDIA L4", 23034, "l4"),
    ("NVIDIA L40", 46068, "l40"),
    ("NVIDIA L40S", 46068, "l40s"),
    ("NVIDIA A10", 23028, "a10"),
    ("NVIDIA A10G", 23028, "a10g"),
    ("NVIDIA A16", 15356, "a16-per-gpu"),
    ("NVIDIA A30", 24576, "a30"),
    ("NVIDIA A40", 46068, "a40"),
    ("NVIDIA A40", 49140, "a40"),
    ("Tesla T4", 15360, "t4"),
    ("NVIDIA T4G", 15360, "t4g"),
    ("Tesla V100-SXM2-16GB", 16160, "v100-sxm2-16gb"),
    ("Tesla V100-SXM2-32GB", 32510, "v100-sxm2-32gb"),
    ("Tesla V100-PCIE-16GB", 16160, "v100-pcie-16gb"),
    ("Tesla P100-SXM2-16GB", 16280, "p100-sxm2"),
    ("NVIDIA RTX A6000", 49140, "rtx-a6000"),
    ("NVIDIA RTX 6000 Ada Generation", 49140, "rtx-6000-ada"),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887, "rtx-pro-6000-ws"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "rtx-pro-6000-server"),
    ("Quadro RTX 8000", 49152, "quadro-rtx-8000"),
    ("NVIDIA TITAN RTX", 24576, "titan-rtx"),
    ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", 16376, "rtx-4090-laptop"),
    ("NVIDIA GeForce RTX 4060 Laptop GPU", 8188, "rtx-4060-laptop"),
    ("NVIDIA GeForce RTX 3060 Laptop GPU", 6144, "rtx-3060-laptop"),
    ("NVIDIA GeForce RTX 3060", 12288, "rtx-3060-12gb"),
    ("NVIDIA GeForce RTX 4060 Ti", 16380, "rtx-4060-ti-16gb"),
    ("NVIDIA GeForce RTX 4060 Ti", 8188, "rtx-4060-ti-8gb"),
    ("NVIDIA GeForce RTX 3080", 12288, "rtx-3080-12gb"),
    ("NVIDIA GeForce RTX 4080 Laptop GPU", 12282, "rtx-4080-laptop"),
    ("NVIDIA GeForce GTX 1080", 8192, "gtx-1080"),
    ("NVIDIA GeForce GTX 1060 6GB", 6144, "gtx-1060-6gb"),
    ("Tesla K80", 11441, "k80-per-gpu"),
    ("NVIDIA GeForce RTX 4070 Ti SUPER", 16376, "rtx-4070-ti-super"),
    ("NVIDIA GeForce RTX 5090", 32607, "rtx-5090"),
    ("GeForce GTX 1080 Ti", 11178, "gtx-1080-ti"),
    ("AMD Instinct MI300X", 196288, "mi300x"),
    ("AMD Instinct MI210", 65520, "mi210"),
    ("Radeon RX 7900 XTX", 24560, "rx-7900-xtx"),
    ("Apple M3 Max (40-core GPU)", None, "apple-m3-max-40"),
    ("Intel(R) Arc(TM) A770 Graphics", 16288, "arc-a770-16gb"),
]
UNKNOWN = [
    ("NVIDIA GeForce RTX 3060", 8192, "has 8.0 GiB"),
    ("NVIDIA GeForce RTX 3070", 16384, "has 16.0 GiB"),
    ("NVIDIA GeForce RTX 3080", 20480, "has 20.0 GiB"),
    ("NVIDIA GeForce RTX 2080 with Max-Q Design", 8192, "no catalogue row"),
    ("NVIDIA GeForce RTX 5090 D", 32607, "no catalogue row"),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887, "no catalogue row"),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864, "no catalogue row"),
    ("GRID A100-10C", 10240, "no catalogue row"),
    ("NVIDIA L4", 2880, "has 2.8 GiB"),
    ("NVIDIA H800 NVL", 95830, "no catalogue row"),
    ("AMD Instinct MI250X", 65520, "has 64.0 GiB"),
    ("Apple M3 Max (35-core GPU)", None, "no catalogue row"),
    ("", None, "no catalogue row"),
]
PROCESSORS = [
    ("13th Gen Intel(R) Core(TM) i9-13900K", "i9-13900k"),
    ("Intel(R) Core(TM) Ultra 9 285K", "ultra-9-285k"),
    ("Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz", "xeon-e5-2686-v4"),
    ("Intel(R) Xeon(R) Platinum 8480CL", None),
    ("INTEL(R) XEON(R) PLATINUM 8592+", "xeon-8592"),
    ("AMD EPYC 9654 96-Core Processor", "epyc-9654"),
    ("AMD Ryzen 9 7950X 16-Core Processor", "ryzen-9-7950x"),
    ("AMD Ryzen 9 7950X3D 16-Core Processor", None),
    ("AMD RYZEN AI MAX+ PRO 395 w/ Radeon 8060S", "ryzen-ai-max-395"),
    ("Apple M4 Max", "apple-m4-max-cpu"),
    ("Amazon EC2 Neoverse-V1", "graviton3"),
    ("AMD EPYC", None),
]


@pytest.mark.parametrize(("name", "mib", "identifier"), KNOWN)
def test_a_driver_name_finds_its_row(name, mib, identifier):
    assert match_accelerator(name, None if mib is None else mib * MIB).value == identifier


@pytest.mark.parametrize(("name", "mib", "reason"), UNKNOWN)
def test_another_part_of_a_like_name_finds_none_and_says_why(name, mib, reason):
    found = match_accelerator(name, None if mib is None else mib * MIB)
    assert found.value is None
    assert reason in found.reason


@pytest.mark.parametrize(("model", "identifier"), PROCESSORS)
def test_a_processor_name_finds_its_row(model, identifier):
    assert match_cpu(model).value == identifier


def test_pci_ids_stand_in_for_names():
    assert match_pci("1002:744c:c8", 24560 * MIB).value == "rx-7900-xtx"
    assert match_pci("1002:744c:cc", 20464 * MIB).value == "rx-7900-xt"
    assert match_pci("1002:74a1:00", 196288 * MIB).value == "mi300x"
    assert match_pci("1002:744c:ce", 16368 * MIB).value is None
    assert "fits mi250, mi250x" in match_pci("1002:740c:01", None).reason


def test_cloud_volumes_are_network_disks():
    assert match_disk("Amazon Elastic Block Store") == "network"
    assert match_disk("Amazon EC2 NVMe Instance Storage") == "NVMe"
    assert match_disk("Samsung SSD 980 PRO 1TB") is None


def test_every_id_is_in_the_catalogue():
    catalog, names = load_catalog(), device_names()
    assert [row.id for row in names.accelerators if row.id not in catalog.accelerators] == []
    assert [identifier for identifier, _ in names.cpus if identifier not in catalog.processors] == []


def test_memory_agrees_with_the_catalogue():
    catalog, names = load_catalog(), device_names()
    for row in names.accelerators:
        usable = catalog.accelerators[row.id].memory_bytes
        if row.memory_mib is not None:
            assert row.fits(usable, names.tolerance), (row.id, usable / MIB, row.memory_mib)
