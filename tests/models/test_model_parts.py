"""What a model has alongside the weights of its text, and transformers that read pictures."""

from __future__ import annotations

import ast
import json
import math
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.models import shape_from_huggingface
from capacity_tui.engine.models.model_parts import load_model_parts
from capacity_tui.engine.models.networks import LayerList, Surroundings, adapter_parameters, network_spec_type
from capacity_tui.engine.models.networks.blocks import Shape
from capacity_tui.engine.models.networks.reading import build_network
from capacity_tui.engine.models.transformer import count_parameters
from capacity_tui.engine.models.transformer.configuration import shape_from_config
from capacity_tui.engine.models.transformer.counts import decode_flops_per_token, kv_elements_per_token
from capacity_tui.engine.models.transformer.shape import load_file_names, load_traits
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import answer, plan_of_line

RECORDED = json.loads((Path(__file__).parent / "configurations.json").read_text())
"""Configurations with the parameters that Transformers 5.24 counts on the meta device (2026-11-24), or that published
weights have; most are the defaults of their class, without the keys that no count depends on."""


@pytest.mark.parametrize("name", RECORDED)
def test_a_class_has_as_many_parameters_as_transformers_counts(name: str) -> None:
    shape = shape_from_config(RECORDED[name]["config"])
    assert count_parameters(shape).total == pytest.approx(RECORDED[name]["parameters"], rel=0.005)


def test_a_tower_of_pictures_says_that_texts_are_not_counted_and_is_not_trained_by_itself() -> None:
    def planned(task: str) -> Plan:
        return Plan.model_validate({"model": {"name": "clip-vit-b-32"}, "hardware": {"name": "t4"}, "task": task})

    assert "the tower of texts not counted" in estimate_plan(planned("infer")).estimate.work.assumed
    with pytest.raises(CapacityError, match="not trained by itself"):
        estimate_plan(planned("train"))


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("gemma-3n-e4b", "towers of pictures and sound"),
        ("llama-4-scout", "the tower of pictures"),
        ("qwen2.5-omni-7b", "the talker and the decoder of sound"),
    ],
)
def test_an_answer_says_what_is_published_with_a_model_and_not_counted(name: str, left_out: str) -> None:
    plan = Plan.model_validate({"model": {"name": name}, "hardware": {"name": "h200"}, "task": "infer"})
    assert any(text.startswith(left_out) for text in estimate_plan(plan).estimate.work.assumed)


def test_weights_that_no_file_has_are_not_counted_and_said() -> None:
    sizes = {"num_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "vocab_size": 1000, "ffn_hidden_size": 512}
    experts = {"n_routed_experts": 16, "zero_expert_num": 8, "moe_topk": 4, "expert_ffn_hidden_size": 128}
    latent = {"kv_lora_rank": 64, "q_lora_rank": 128, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32}
    shape = shape_from_config({"architectures": ["LongcatFlashForCausalLM"], **sizes, **experts, **latent})
    assert "what Transformers reserves for experts that return a token as it came not counted" in shape.assumed


def test_patches_of_all_frames_of_a_film_are_read_together() -> None:
    config = RECORDED["VideoMAEForVideoClassification"]["config"]
    assert shape_from_config(config).fixed_length == 16 // 2 * (224 // 16) ** 2


def test_a_head_on_a_model_with_a_tower_is_not_counted_as_one_on_its_text_alone() -> None:
    config = RECORDED["Gemma3ForConditionalGeneration"]["config"] | {
        "architectures": ["Gemma3ForSequenceClassification"]
    }
    with pytest.raises(PlanError, match="weights are not known"):
        shape_from_config(config)


def test_an_answer_says_how_long_sound_is_that_no_plan_gave() -> None:
    plan = plan_of_line(read_line("serve wav2vec2-base on t4")).plan
    assert ("model.spec.seconds", 10.0) in [(one.key, one.value) for one in answer(plan).estimate.assumed]


@pytest.mark.parametrize(
    ("line", "side"),
    [
        ("serve convnextv2-base on t4", 224),
        ("train yolov8n on t4", 640),
        ("serve vit-b-16 on t4", 224),
        ("serve vit-b-16 on t4 384px", None),
        ("serve convnext-base on t4 384px", None),
    ],
)
def test_an_answer_says_how_large_images_are_that_no_plan_gave(line: str, side: int | None) -> None:
    assumed = {one.key: one.value for one in answer(plan_of_line(read_line(line)).plan).estimate.assumed}
    assert assumed.get("model.spec.image_size") == side


def test_a_second_version_of_a_network_is_not_the_first() -> None:
    assert load_catalog().networks.find("facebook/convnextv2-base-22k-224").id == "convnextv2-base"
    assert load_catalog().architectures.find("dinov3-base").id == "dinov3-vit-b-16"


def test_the_first_positions_of_roberta_are_of_no_token() -> None:
    shape = shape_from_config(RECORDED["RobertaModel"]["config"] | {"max_position_embeddings": 514})
    assert (shape.max_context, shape.positions) == (512, 514)


def test_pages_say_how_many_classes_are_known_by_name() -> None:
    parts, known, names = load_model_parts(), load_traits().classes, load_file_names().counted_as
    classes = {*parts.classes, *known, *(name for name in names if name[0].isupper())}
    pages = Path(__file__).parents[2] / "docs" / "other-tools.md"
    assert f"{len(classes)} classes are known by name" in pages.read_text()


def test_every_formula_can_be_read() -> None:
    parts = load_model_parts()
    formulas = [formula for _, formula in parts.formulas.functions.values()]
    formulas += [formula for formula, _ in parts.formulas.towers.values()]
    for part in (*parts.classes.values(), *parts.endings.values()):
        formulas.append(part.other_weights)
        for formula in part.fields.values():
            formulas += [formula] if isinstance(formula, str) else list(formula.values())
    for formula in formulas:
        ast.parse(formula.strip(), mode="eval")


def test_llava_as_it_was_published_leaves_out_what_its_classes_have_by_default(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "text_config": {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064},
        "tie_word_embeddings": False,
        "vision_config": {
            "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096,
            "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
        },
        "vision_feature_layer": -2,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    shape = shape_from_huggingface(tmp_path)
    assert count_parameters(shape).total == pytest.approx(7_063_427_072, rel=1e-6)
    assert shape.assumed == ("pictures and sound not counted: their towers' weights alone",)


def test_qwen_vl_as_it_was_published_has_its_text_at_the_top() -> None:
    config = {
        "architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl", "hidden_size": 1536,
        "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
        "vocab_size": 151936, "tie_word_embeddings": True,
        "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "hidden_size": 1536,
                          "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2},
    }  # fmt: skip
    assert count_parameters(shape_from_config(config)).total == pytest.approx(2_208_985_600, rel=1e-6)


def test_shared_layers_weigh_once_and_work_each_time() -> None:
    config = RECORDED["AlbertModel"]["config"]
    once, twelve = (
        shape_from_config({**config, "num_hidden_layers": layers, "num_hidden_groups": 1}) for layers in (1, 12)
    )
    assert count_parameters(once).total == count_parameters(twelve).total
    assert count_parameters(twelve).matmul_per_token > 11 * count_parameters(once).matmul_per_token


def test_layers_with_a_state_keep_no_cache() -> None:
    shape = shape_from_config(RECORDED["MambaForCausalLM"]["config"])
    assert kv_elements_per_token(shape) == 0
    assert shape.attention_kind.state() > 0
    assert decode_flops_per_token(shape, 100) == decode_flops_per_token(shape, 100_000)


def test_some_layers_of_a_hybrid_attend() -> None:
    shape = shape_from_config(RECORDED["BambaForCausalLM"]["config"] | {"attn_layer_indices": [9, 18, 27]})
    assert (shape.attention_kind.full_layers, shape.attention_kind.linear_layers) == (3, 29)


SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=5)


@given(data=st.data(), name=st.sampled_from(sorted(RECORDED)))
def test_damaged_sizes_are_refused_and_never_crash(data: st.DataObject, name: str) -> None:
    config = json.loads(json.dumps(RECORDED[name]["config"]))
    holders = [config, *(value for value in config.values() if isinstance(value, dict))]
    holder = data.draw(st.sampled_from(holders))
    key = data.draw(st.sampled_from(sorted(holder)))
    holder[key] = data.draw(SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), SCALARS))
    try:
        shape_from_config(config)
    except CapacityError as error:
        assert error.one_line()


@pytest.mark.parametrize("task", ["infer", "train"])
@pytest.mark.parametrize(
    "name", ["MambaForCausalLM", "BambaForCausalLM", "AlbertModel", "Qwen2_5_VLForConditionalGeneration"]
)
def test_plans_of_such_models_are_estimated_in_full(tmp_path: Path, name: str, task: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(RECORDED[name]["config"]))
    plan = {"task": task, "model": {"config": str(tmp_path)}, "hardware": {"name": "h200", "devices": 8}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = estimate_plan(Plan.model_validate(plan)).estimate
    assert estimate.model.parameters == pytest.approx(RECORDED[name]["parameters"], rel=0.005)
    assert 0 < estimate.memory.per_device_bytes.high < math.inf


def made(name: str, image_size: int = 1024) -> LayerList:
    return network_spec_type(name)(image_size=image_size).network(load_catalog(), name)


def around(name: str, image_size: int = 1024) -> Surroundings:
    return network_spec_type(name)(image_size=image_size).surroundings(load_catalog(), name)


def attended(network: LayerList) -> list[tuple[int, int]]:
    return sorted({(layer.positions, layer.depth) for layer in network.layers if layer.kind == "attention"})


def test_a_pass_of_flux_is_what_one_counts_by_hand() -> None:
    width, picture, text = 3072, 64 * 64, 512
    both = picture + text
    block = 12 * width**2  # queries, keys, values and output, and a feed-forward of four widths
    attention = 2 * both * width  # scores, and values weighted with them, of a position
    blocks = (19 + 38) * both * (block + attention)
    ends = picture * 2 * 64 * width + text * 4096 * width
    signals = 3 * width**2 + (2 * 256 + 768) * width + (2 * 19 * 6 + 38 * 3 + 2) * width**2
    assert made("flux.1-dev").flops == 2 * (blocks + ends + signals)


def test_tokens_are_patches_of_sixteen_pixels_and_those_of_the_text() -> None:
    assert attended(made("flux.1-dev")) == [(4096 + 512, 4096 + 512)]
    assert attended(made("flux.1-schnell", 512)) == [(1024 + 256, 1024 + 256)]
    assert attended(made("stable-diffusion-3.5-large")) == [(4096 + 333, 4096 + 333)]
    # The picture attends to itself once more in some blocks.
    assert attended(made("stable-diffusion-3.5-medium")) == [(4096, 4096), (4096 + 333, 4096 + 333)]
    assert attended(made("qwen-image", 1328)) == [(83 * 83 + 512, 83 * 83 + 512)]


def test_work_grows_with_the_picture_and_parameters_do_not() -> None:
    small, usual, large = (made("flux.1-dev", size) for size in (512, 1024, 2048))
    assert small.parameters == usual.parameters == large.parameters
    # Four times the patches beside a text that stays as long; attention grows with their square.
    assert small.flops == 21_502_600_151_040
    assert 4.0 < large.flops / usual.flops < 8.0


def test_readers_and_decoders_have_the_counts_of_their_configurations() -> None:
    flux, stable = around("flux.1-dev"), around("stable-diffusion-3.5-large")
    assert [reader.parameters for reader in flux.readers] == [123_060_480, 4_762_310_656]
    assert [reader.parameters for reader in stable.readers] == [123_650_304, 694_659_840, 4_762_310_656]
    assert [reader.parameters for reader in around("stable-diffusion-2").readers] == [340_387_840]
    assert [reader.parameters for reader in around("qwen-image").readers] == [8_292_166_656]
    assert flux.readers[1].flops == 4_844_723_109_888
    assert [(decoder.parameters, decoder.flops) for decoder in flux.decoder] == [(49_545_475, 10_472_204_009_472)]
    assert around("stable-diffusion-xl").decoder[0].flops == 10_470_392_070_144
    assert flux.decoder[0].layers[-1].output == Shape(3, 1024, 1024)


def test_adapters_stand_beside_the_attention_of_both_streams() -> None:
    """Queries, keys, values and outputs of each stream in 19 blocks; those of joined streams have no output alone."""
    rank, width = 16, 3072
    assert adapter_parameters(made("flux.1-dev"), rank) == rank * 2 * width * (19 * 2 * 4 + 38 * 3)
    twice = 24 * 4 + 23 * 4 + 3 + 13 * 4
    assert adapter_parameters(made("stable-diffusion-3.5-medium"), rank) == rank * 2 * 1536 * twice


def test_streams_of_unlike_widths_are_refused() -> None:
    layers = [{"conv": 8}, {"save": "picture"}, {"text": {"tokens": 4, "width": 16}}, {"join": "picture"}]
    with pytest.raises(PlanError, match="unlike widths"):
        build_network(layers, Shape(3, 8, 8), 10)
