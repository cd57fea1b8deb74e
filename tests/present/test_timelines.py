"""Memory over a step, the parts of a step, and the roofline as pictures of text."""

from __future__ import annotations

import pytest

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.explain import memory_timeline, step_timeline
from capacity_tui.engine.plan.files import example_names, example_text, plan_from_text
from capacity_tui.engine.present.pictures import PICTURES, picture_lines, picture_of
from capacity_tui.engine.solve import answer


@pytest.fixture(scope="module", params=example_names())
def answered(request: pytest.FixtureRequest) -> Answer:
    return answer(plan_from_text(example_text(request.param), request.param))


def example(name: str) -> Answer:
    return answer(plan_from_text(example_text(name), name))


@pytest.mark.parametrize("width", [40, 58, 78, 120])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_every_picture_keeps_its_width_and_its_characters(answered: Answer, width: int, ascii_only: bool) -> None:
    for group in PICTURES:
        picture = picture_of(group, answered)
        if picture is None:
            continue
        lines = picture_lines(picture, width, ascii_only)
        drawn = [line for line in lines if line.startswith("  ") or line[:1] in "│|"]
        assert drawn
        assert all(len(line) <= width for line in drawn), group
        if ascii_only:
            assert all(line.isascii() for line in lines), group


def test_parts_of_a_step_follow_each_other_and_fill_it(answered: Answer) -> None:
    timeline = step_timeline(answered.estimate)
    assert sum(phase.seconds for phase in timeline.phases) == pytest.approx(timeline.seconds)
    for phase in timeline.phases:
        end = 0.0
        for stretch in phase.stretches:
            assert stretch.start == pytest.approx(end)
            end += stretch.seconds
        assert end == pytest.approx(phase.seconds)


def test_memory_peaks_where_the_estimate_says(answered: Answer) -> None:
    memory, timeline = answered.estimate.memory, memory_timeline(answered.estimate)
    assert sum(part.size for part in timeline.parts) == pytest.approx(float(memory.reserved_bytes.value))
    if timeline.phases:
        assert max(phase.size for phase in timeline.phases) == pytest.approx(float(memory.per_device_bytes.value))
        assert timeline.phases[0].name == "load"


def test_what_hides_is_told_with_what_it_hides_behind() -> None:
    picture = picture_of("computation", example("pretrain_70b_512_h100"))
    assert picture is not None
    text = "\n".join(picture_lines(picture, 78))
    assert "of tensor parallel behind kernels" in text
    assert "░" in text
    assert "." in "\n".join(picture_lines(picture, 78, ascii_only=True))


def test_memory_names_stage_and_device() -> None:
    picture = picture_of("memory", example("pretrain_70b_512_h100"))
    assert picture is not None
    head, *_, stages = picture_lines(picture, 78)
    assert head.startswith("Device: 79.6 GiB, peak")
    assert "pipeline stage" in head
    assert stages.startswith("Pipeline stages: first")


def test_figures_have_the_picture_of_their_group() -> None:
    found = example("qlora_rtx_4090")
    assert picture_of("memory.parts.weights", found) == memory_timeline(found.estimate)
    assert picture_of("computation.tokens_per_second", found) == step_timeline(found.estimate)
    assert picture_of("computation.mfu", found) == picture_of("bottleneck.ridge_point", found)
    assert picture_of("cost.usd", found) is None
