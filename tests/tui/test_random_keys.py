"""Keys in random order, over the real engine: whatever is pressed, the program goes on and nothing is a mistake.

``python tests/tui/test_random_keys.py KEYS SEED`` presses as many as one likes and names the last before a mistake.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path

import pytest
from flow import plan_screen, press_only
from textual import events

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.settings import Settings

STARTS = (
    None,
    "model: {name: auto}\nhardware: {name: rtx-4090}",
    "model: {name: llama-3.1-70b}\ntask: infer\nhardware: {name: h100-sxm-80gb, devices: 8}",
    "model: {name: svm_rbf, spec: {n: 5000, p: 20}}\nhardware: {name: rtx-4090}",
    "model: {name: unet, spec: {image_size: 256}}\ntraining: {samples: 1000}\nhardware: {name: rtx-4090}",
)
# What people press most stands here more than once.
KEYS = """
    up down left right j k h l g G pageup pagedown home end tab shift+tab 1 2 3 4 5 z n N x b c u u ctrl+r
    plus plus plus minus minus equals_sign asterisk underscore backspace backspace e enter enter escape
    slash question_mark y Y E s S o H m t space left_square_bracket exclamation_mark ctrl+p a 0 full_stop f r v P
"""
SIZES = ((120, 40), (80, 24), (60, 20), (40, 12))


async def press_keys(count: int, seed: int) -> list[str]:
    """Press random keys and return them.

    Raises:
        AssertionError: one of them was answered by a mistake.
    """
    chance, keys = random.Random(seed), KEYS.split()
    app = CapacityApp(source=STARTS[seed % len(STARTS)], engine=CapacityEngine, settings=Settings(hint=False))
    pressed: list[str] = []
    async with app.run_test(size=SIZES[seed % len(SIZES)]) as pilot:
        await pilot.pause(0.5)
        plan_screen(app).sensors.change_rate(30)
        for _ in range(count):
            key = chance.choice(keys)
            pressed.append(key)
            if chance.random() < 0.2:  # as a slow line delivers them: several at once, before anything has followed
                for _ in range(chance.randrange(1, 4)):
                    app.post_message(events.Key(key, None))
            await press_only(pilot, key)
            if not app.is_running or app.mistakes:
                break
        await pilot.pause(0.2)
        if app.mistakes:
            raise AssertionError(f"after {' '.join(pressed[-12:])}") from app.mistakes[0]
        if not app.is_running:
            assert app.return_code == 0
    return pressed


@pytest.mark.parametrize("seed", range(len(STARTS)))
async def test_random_keys_never_are_a_mistake(seed: int) -> None:
    await press_keys(24, seed)


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        for name in ("CONFIG", "STATE", "DATA"):
            os.environ[f"CAPACITY_TUI_{name}"] = str(Path(folder) / name)
        os.chdir(folder)
        total = 0
        while total < count:
            total += len(asyncio.run(press_keys(min(500, count - total), seed)))
            sys.stdout.write(f"seed {seed}: {total} keys\n")
            seed += 1


if __name__ == "__main__":
    main()
