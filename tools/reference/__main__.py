"""Write every page and file that is made of the program itself.

    uv run python -m tools.reference             all of them, below docs/

A test says which of them are not as the program is.
"""

from __future__ import annotations

from pathlib import Path

from tools.reference.generated import generated

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Write them where they differ."""
    for name, text in generated():
        path = ROOT / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(name)


if __name__ == "__main__":
    main()
