"""Of the checkpoints on disk, the newest that was written to its end is the one to start from."""

from __future__ import annotations

import json
import os
import zipfile

import pytest

from capacity_tui.engine.runs.guard.checkpoints import CheckpointFolder


def archive(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("data.pkl", b"x" * 1000)


def tensors(path, missing=0):
    header = json.dumps({"w": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(64 - missing))


def trainer(folder, step, at, complete=True):
    found = folder / f"checkpoint-{step}"
    found.mkdir(parents=True)
    tensors(found / "model.safetensors")
    archive(found / "optimizer.pt")
    if complete:
        (found / "trainer_state.json").write_text("{}")
    for file in found.iterdir():
        os.utime(file, (at, at))
    return found


def newest(folder):
    found = CheckpointFolder(folder).complete()
    return found[0].path.name if found else None


def test_the_newest_with_its_marker_counts(tmp_path):
    trainer(tmp_path, 100, 1000)
    trainer(tmp_path, 200, 2000)
    trainer(tmp_path, 300, 3000, complete=False)
    assert newest(tmp_path) == "checkpoint-200"
    assert CheckpointFolder(tmp_path).complete()[0].step == 200


@pytest.mark.parametrize("damaged", ["optimizer.pt", "model.safetensors", "trainer_state.json"])
def test_a_file_that_was_cut_short_is_no_part_of_a_whole(tmp_path, damaged):
    trainer(tmp_path, 100, 1000)
    file = trainer(tmp_path, 200, 2000) / damaged
    file.write_bytes(file.read_bytes()[:-1])
    assert newest(tmp_path) == "checkpoint-100"


def test_shards_that_an_index_names_have_to_be_there(tmp_path):
    trainer(tmp_path, 100, 1000)
    folder = trainer(tmp_path, 200, 2000)
    index = {"weight_map": {"w": "model.safetensors", "v": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert newest(tmp_path) == "checkpoint-100"
    tensors(folder / "model-2.safetensors")
    assert newest(tmp_path) == "checkpoint-200"


def test_a_tracker_names_what_all_ranks_have_saved(tmp_path):
    for step in (10, 20):
        (tmp_path / f"iter_{step:07d}").mkdir()
        archive(tmp_path / f"iter_{step:07d}" / "model_optim_rng.pt")
    assert newest(tmp_path) is None
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("10\n")
    assert newest(tmp_path) == "iter_0000010"


def test_a_mark_of_the_unfinished_rules_out(tmp_path):
    (tmp_path / "gpt-step=5-last").mkdir()
    archive(tmp_path / "gpt-step=5-last" / "weights.pt")
    (tmp_path / "gpt-step=5-last-unfinished").touch()
    assert newest(tmp_path) is None
    (tmp_path / "gpt-step=5-last-unfinished").unlink()
    assert newest(tmp_path) == "gpt-step=5-last"


def test_an_epoch_of_torchtune_is_whole_once_the_state_of_its_recipe_is(tmp_path):
    for epoch in (0, 1):
        (tmp_path / f"epoch_{epoch}").mkdir()
        tensors(tmp_path / f"epoch_{epoch}" / "model-00001-of-00001.safetensors")
        os.utime(tmp_path / f"epoch_{epoch}" / "model-00001-of-00001.safetensors", (1000 * epoch, 1000 * epoch))
    (tmp_path / "torchtune_config.yaml").touch()
    assert newest(tmp_path) is None
    state = tmp_path / "recipe_state" / "recipe_state.pt"
    state.parent.mkdir()
    archive(state)
    os.utime(state, (500, 500))
    assert newest(tmp_path) == "epoch_0"
    os.utime(state, (1500, 1500))
    assert newest(tmp_path) == "epoch_1"
    state.write_bytes(state.read_bytes()[:-1])
    assert newest(tmp_path) is None


def test_epochs_of_other_software_need_no_state_of_a_recipe(tmp_path):
    (tmp_path / "epoch_0").mkdir()
    tensors(tmp_path / "epoch_0" / "model.safetensors")
    assert newest(tmp_path) == "model.safetensors"


def test_folders_of_runs_are_looked_through_and_single_files_count(tmp_path):
    (tmp_path / "lightning_logs" / "version_0").mkdir(parents=True)
    archive(tmp_path / "lightning_logs" / "version_0" / "epoch-3.ckpt")
    (tmp_path / "lightning_logs" / "version_0" / "epoch-4.ckpt").touch()
    assert newest(tmp_path) == "epoch-3.ckpt"
    assert newest(tmp_path / "nothing") is None


def test_one_that_is_being_written_is_told_once_its_size_stands_still(tmp_path):
    times, steady = iter(range(1000, 2000)), iter(range(0, 2000, 10))
    folder = CheckpointFolder(tmp_path, clock=lambda: next(times), steady=lambda: next(steady))
    file = tmp_path / "state-7.pt"
    archive(file)
    os.utime(file, (1005, 1005))
    assert folder.look() == ()
    with file.open("r+b") as growing:
        growing.seek(0, 2)
        growing.write(b" ")
    os.utime(file, (1010, 1010))
    assert folder.look() == ()
    (found,) = folder.look()
    assert (found.step, found.seconds) == (7, 10)
    assert folder.look() == ()
