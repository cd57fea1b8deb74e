"""The packages of the wheel, found in their folders and installed below one name: ``capacity_tui.engine`` and so on.

For work on the checkout itself the folders are linked below ``build/links``, where new files are seen at once.
"""

import sys
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
FOLDERS = ("engine", "tui", "profiles", "themes")


def link_folders(parent: Path) -> None:
    """Link the folders of the checkout below a folder that stands for ``capacity_tui``."""
    parent.mkdir(parents=True, exist_ok=True)
    for folder in FOLDERS:
        link = parent / folder
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(ROOT / folder, target_is_directory=True)


if "editable_wheel" in sys.argv:
    link_folders(ROOT / "build" / "links" / "capacity_tui")
    setup(packages=["capacity_tui"], package_dir={"": "build/links"})
else:
    packages = find_packages(include=[pattern for folder in FOLDERS for pattern in (folder, f"{folder}.*")])
    setup(
        packages=[f"capacity_tui.{package}" for package in packages],
        package_dir={f"capacity_tui.{folder}": folder for folder in FOLDERS},
    )
