"""Modules and scripts by the names of the documents, so that what was written for these runs unchanged beside them."""

from __future__ import annotations

from collections.abc import Mapping

_MODULE = '"""{about}"""\n\nfrom capacity_tui.engine import {names}\n\n__all__ = {all}\n'
_SCRIPT = """

if __name__ == "__main__":
    import sys

    from capacity_tui.tui.cli import main

    sys.exit(main([{words}, *sys.argv[1:]]))
"""
_MICROSECONDS = '''

def one_batch_predict(config: str) -> float:
    """Return the microseconds of one batch, as estimate-train-time does."""
    return 1e6 * step_seconds(config)
'''
PROFILING_NAMES = ("HardwareAnalyzerV2", "ProfilingEngine", "ProfilingSummary", "ResourceSnapshot", "StorageEstimator")
MIGRATION_NAMES = ("AWSGPUMigrationAnalyzer", "ModelSize", "WorkloadType")


def document_modules() -> Mapping[str, str]:
    """Return the text of each module by the name of its file."""
    return {
        "gpu_migration_analyzer.py": _module("The GPU Fleet Optimizer's analyzer.", MIGRATION_NAMES)
        + _script("fleet", "run"),
        "config_viewer.py": '"""What the GPU Fleet Optimizer knows."""\n' + _script("fleet", "check"),
        "estimate_train_time.py": _module("estimate-train-time's prediction of one batch.", ("step_seconds",))
        + _MICROSECONDS,
        "tools.py": _module("KATO's profiling, storage and hardware tools.", PROFILING_NAMES),
        "analyze_hardware.py": '"""The hardware analysis of the auto-configuration system."""\n' + _script("detect"),
    }


def _module(about: str, names: tuple[str, ...]) -> str:
    return _MODULE.format(about=about, names=", ".join(names), all=list(names))


def _script(*words: str) -> str:
    return _SCRIPT.format(words=", ".join(map(repr, words)))
