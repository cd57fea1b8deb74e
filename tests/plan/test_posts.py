"""Posts of several sentences: what means nothing in them is left out and said; what matters is asked back."""

import pytest

from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.plan.line.alternatives import alternatives
from capacity_tui.engine.solve import plan_of_line

CODE = (
    "I have a cpu amd ryzen 7 3700x 8 and a gpu NVIDIA gtx1060 6g. This speed for training is good or is poor? "
    "For training i use YOLO('yolov8n.pt') imgsz=704, epochs=8, batch=8. Can i do something to speed it up?"
)
PIXELS = (
    "I tried to fine-tune the Qwen2-VL 72B. batch-size: 1, min and max-pixel = 16*28*28 and 128*28*28. The dataset was "
    "500 triplets of images and answers. How much VRAM is needed for LoRA fine-tuning?"
)
BATCHES = (
    "I was trying to split my data into 10 batches for xgboost external memory. However, it doesn't work. My data is "
    "like a 1e6*6500 np.array. My GPU memory is 24G, which is absolutely enough for 10% of the data. What is wrong?"
)
HOME = "I plan to serve llama-3.1-70b on 4 h100 cards"
LAB = "There are 100 users in our lab and they write long texts. Is this fast enough for them or not?"


@pytest.mark.parametrize(
    ("post", "left_out", "path", "value"),
    [
        (CODE, "8", "model.name", "yolov8n"),
        (PIXELS, "16*28*28, 128*28*28", "training.samples", 500),
        (BATCHES, "10 batches, 10% of", "model.spec.p", 6500),
    ],
)
def test_what_means_nothing_in_a_post_is_left_out_and_that_is_said_first(post, left_out, path, value):
    line = read_line(post)
    assert line.faults == ()
    assert line.values[path] == value
    assert line.remarks[0] == f"not understood, and left out: {left_out}"
    assert line.remarks[0] in plan_of_line(line).remarks


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("lora qwen2-vl-72b h200 max-pixel 128*28*28", "128*28*28"),
        (CODE.replace("YOLO('yolov8n.pt')", "my network"), "8"),  # no model is named
        (
            "I train llama-3.1-8b with lora at home on a 4090. My friend says I should not do it with 63(7*9) a100 "
            "cards, because they are too much of a good thing. What do you say?",
            "63(7*9)",
        ),
        (f"{HOME} with fpp8 weights. {LAB}", "fpp8"),
        (f"{HOME} or 8 l40z cards. {LAB}", "l40z"),
        (f"{HOME} with fsdpp. {LAB}", "fsdpp"),
        (f"{HOME} for us. The latency is limited to 300 by my boss. {LAB}", "300"),
        (f"{HOME} for us. Goal: 300. {LAB}", "300"),
        (f"{HOME} but only 50% of it is mine. {LAB}", "50%"),
    ],
)
def test_what_could_matter_is_asked_back_in_a_post_and_anything_in_a_line(line, about):
    assert any(about in str(fault) for fault in read_line(line).faults)


def test_what_is_told_of_a_link_gives_way_to_what_is_asked():
    line = read_line(
        "I would like to ask if three A100 nodes are enough for deepseek-r1? In the link, they use four A100 nodes."
    )
    assert line.faults == ()
    assert line.values["hardware.devices"] == 24
    assert any("four A100 nodes" in remark for remark in line.remarks)


def test_names_that_are_compared_end_with_their_sentence():
    post = (
        "What is the best way to serve it? Facing OOM in 1x8 H200. I'm trying to serve qwen2.5-72b using vLLM on a "
        "node with 8x H200 GPUs. Should I take 1 instance (1x8 GPUs) vs. 2 separate instances (2x4 GPUs each)?"
    )
    assert alternatives(post) == ()
    assert read_line(post).faults


@pytest.mark.parametrize(
    ("line", "solve"),
    [
        ("rent 8xH100 for 3 days at $2.49/hr each - how many tokens can I train a 7B on", "training.tokens"),
        ("rent a 3090 for 10 hours, max epochs of yolov8s on 20k images", "training.epochs"),
        ("how many users can llama 3.1 8b serve on one l40s, budget $1/h", "inference.users"),
        ("cheapest: max context for qwen3-8b on 1 rented l4", "inference.prompt_tokens"),
    ],
)
def test_the_most_is_asked_for_where_money_is_named_too(line, solve):
    asked = read_line(line).asked
    assert asked is not None
    assert (asked.solve, asked.goal) == (solve, "")


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("which is better for stable diffusion, more vram or more cuda cores?", "a general question is no plan"),
        ("With batch 2048 on 4 V100, 100 epochs, how long?", "which model?"),
        ("on 4 V100, how much time would it take to pre-train the model for 100 epochs", "which model?"),
    ],
)
def test_questions_without_a_subject_are_asked_back(line, title):
    assert title in [fault.title for fault in read_line(line).faults]


def test_ram_that_is_needed_is_no_question_for_devices():
    assert read_line("random forest 10M x 50 on 8 cores, ram needed?").asked is None
