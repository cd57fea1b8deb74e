"""Every figure opens to the bottom: formula, numbers, terms, sources, interval and lever."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from types import ModuleType

import numpy as np
import pytest

from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import fleet
from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import METRICS, Derivation, estimate_resolved, figure, recording, resolve_plan
from capacity_tui.engine.estimate.derivation import Equation
from capacity_tui.engine.estimate.estimate import given_numbers
from capacity_tui.engine.estimate.figures.values import keys
from capacity_tui.engine.estimate.money import owned_hour_usd
from capacity_tui.engine.explain import Explanation, explain_estimate
from capacity_tui.engine.plan import ParallelismSection, Plan
from capacity_tui.engine.plan.files import example_names, example_text, plan_from_text
from capacity_tui.engine.present import explanation_text, followed
from capacity_tui.engine.solve import EstimatedPlan, Explained, answer, explain
from capacity_tui.engine.solve.candidate import candidate
from capacity_tui.engine.solve.modes import with_auto_resolved

H100 = {"name": "h100-sxm-80gb", "devices": 16}
PLANS: dict[str, dict[str, object]] = {
    "a reward model": {
        "task": "finetune",
        "model": {"name": "llama-3-8b"},
        "hardware": H100,
        "training": {"preference": "reward", "micro_batch": 1, "steps": 10},
    },
    "a utilization that is held": {
        "model": {"name": "llama-3-8b"},
        "hardware": H100,
        "training": {"mfu": 0.1, "micro_batch": 1, "steps": 10},
    },
    "adapters and a draft beside what is served": {
        "task": "infer",
        "model": {"name": "llama-3-8b"},
        "hardware": {"name": "h100-sxm-80gb"},
        "inference": {"engine": "vllm", "adapters": 20, "draft_parameters": 1e9, "num_speculative_tokens": 4},
    },
    "offloaded": {
        "model": {"name": "llama-3-8b"},
        "hardware": H100,
        "training": {"micro_batch": 1, "steps": 10},
        "parallelism": {"offload": "parameters"},
    },
    "experts over a pipeline": {
        "model": {"name": "mixtral-8x7b"},
        "hardware": H100,
        "training": {"micro_batch": 1, "global_batch": 16, "framework": "megatron"},
        "parallelism": {"ep": 4, "tp": 2, "pp": 2, "cp": 2, "zero": 1},
    },
    "latent attention served over nodes": {
        "task": "infer",
        "model": {"name": "deepseek-v3"},
        "hardware": H100,
        "parallelism": {"tp": 8, "pp": 2},
        "inference": {"engine": "vllm", "weights": "fp8"},
    },
    "partly on the host": {
        "task": "infer",
        "model": {"name": "llama-3-8b"},
        "hardware": {"name": "rtx-3060-12gb"},
        "inference": {"engine": "llamacpp", "weights": "q4_k_m", "gpu_layers": 10},
    },
    "adapters": {
        "task": "finetune",
        "model": {"name": "llama-3-8b"},
        "hardware": {"name": "rtx-4090"},
        "training": {"adapter": {"kind": "qlora", "rank": 16}, "quantization": "nf4", "checkpointing": "full"},
    },
    "convolutions": {
        "model": {"name": "resnet50"},
        "hardware": {"name": "h100-sxm-80gb", "devices": 4},
        "training": {"checkpointing": "full"},
        "parallelism": {"zero": 3},
    },
    "convolutions served": {"task": "infer", "model": {"name": "simple_cnn"}, "hardware": {"name": "h100-sxm-80gb"}},
    **{
        family: {"model": {"name": family, "spec": {"n": 20000, "p": 50}}, "hardware": {"name": hardware}}
        for family, hardware in (
            ("linear_regression_normal", "cpu-8c-3.5ghz-baseline"),
            ("logistic_regression_newton", "cpu-8c-3.5ghz-baseline"),
            ("logistic_regression_sgd", "h100-sxm-80gb"),
            ("svm_linear", "cpu-8c-3.5ghz-baseline"),
            ("svm_rbf", "cpu-8c-3.5ghz-baseline"),
            ("decision_tree", "cpu-8c-3.5ghz-baseline"),
            ("random_forest", "cpu-8c-3.5ghz-baseline"),
            ("xgboost_like", "h100-sxm-80gb"),
            ("kmeans", "cpu-8c-3.5ghz-baseline"),
            ("pca_svd", "cpu-8c-3.5ghz-baseline"),
        )
    },
}


def plan_of(name: str) -> Plan:
    """Return a plan of this file, or an example."""
    if name in PLANS:
        return Plan.model_validate(PLANS[name])
    return plan_from_text(example_text(name), name)


@pytest.fixture(scope="module", params=[*example_names(), *PLANS])
def opened(request: pytest.FixtureRequest) -> list[Explanation]:
    """Return the explanation of every figure of a plan, without its lever."""
    plan = plan_of(request.param)
    return explained_all(plan, keys(answer(plan).estimate))


def explained_all(plan: Plan, figures: Iterable[str]) -> list[Explanation]:
    """Explain figures of one estimate without the search for their levers, which has tests of its own."""
    catalog = load_catalog()
    resolved = resolve_plan(with_auto_resolved(plan, None, catalog), catalog)
    estimate = estimate_resolved(resolved, catalog, recorded=True)
    return [explain_estimate(resolved, estimate, key, catalog) for key in figures]


def explained(plan: Plan, key: str) -> Explanation:
    """Explain one figure, as above."""
    return explained_all(plan, (key,))[0]


def test_every_figure_opens_into_something(opened: list[Explanation]) -> None:
    for found in opened:
        assert found.derivations or found.terms or found.remarks, found.key
        if not found.figure.number:
            assert found.remarks or found.derivations, found.key
        shown = explanation_text(Explained(found, None))
        assert shown.title
        assert shown.result
        assert shown.formula or shown.remarks, found.key


def test_terms_add_up_to_the_figure(opened: list[Explanation]) -> None:
    for found in opened:
        if found.sum is not None and not found.sum.name:
            total = sum(term.value for term in found.terms)
            assert total == pytest.approx(found.figure.number, rel=1e-6), found.key


def test_a_formula_that_is_shown_gives_the_figure(opened: list[Explanation]) -> None:
    for found in opened:
        if found.derivations and found.sum is None:
            results = [float(np.mean(each.result)) for each in found.derivations]
            assert found.figure.number == pytest.approx(results[0], rel=1e-9), found.key


def test_no_number_is_shown_as_an_array(opened: list[Explanation]) -> None:
    for found in opened:
        shown = explanation_text(Explained(found, None))
        texts = [entry.text for step in (shown, *shown.steps) for entry in step.inputs]
        assert not [text for text in texts if "array" in text or "[" in text], found.key


def test_every_number_put_in_can_be_followed_to_the_ground(opened: list[Explanation]) -> None:
    """What is followed shows the value it had above, until no formula gives it; figures have a key of their own."""
    known = {found.key for found in opened}
    for found in opened:
        shown = explanation_text(Explained(found, None))
        entries = [entry for step in (shown, *shown.steps) for entry in step.inputs]
        depth = 0
        while entries:
            depth += 1
            assert depth < 30, found.key
            assert all(entry.key in known for entry in entries if entry.key), found.key
            pages = [followed(shown, entry) for entry in entries if not entry.key]
            assert all(page.formula or page.remarks for page in pages), found.key
            below = [entry.step for entry in entries if entry.step is not None]
            entries = [entry for step in below for entry in step.inputs]


def test_parts_of_a_served_token_open_into_its_kernels() -> None:
    token = explained(plan_of("vllm_70b_4_h100"), "computation.infer.time_per_output_token_seconds")
    shown = explanation_text(Explained(token, None))
    compute = {entry.name: entry for entry in shown.inputs}["compute"]
    page = followed(shown, compute)
    assert page.formula == "the sum of its parts"
    assert any(entry.name == "output head (decode)" for entry in page.inputs), page.inputs
    [part] = [term for term in token.terms if term.name == "compute"]
    assert part.sum is not None
    assert sum(term.value for term in part.sum.terms) == pytest.approx(part.value, rel=1e-6)


def equations(*packages: ModuleType) -> Iterator[Equation[...]]:
    """Yield every equation of some packages."""
    for package in packages:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for member in vars(importlib.import_module(module.name)).values():
                if isinstance(member, Equation) and member.__module__ == module.name:
                    yield member


OPERATIONS = {"min", "max", "sqrt", "ln", "log2", "inf", "exp", "ceil", "clip", "if", "else", "divides"}


@pytest.mark.parametrize("equation", [*equations(estimates)], ids=lambda each: f"{each.__module__}.{each.__name__}")
def test_a_formula_names_what_is_put_in_and_says_what_it_is(equation: Equation[...]) -> None:
    if "{addends}" in equation.formula:
        return
    words = set(re.findall(r"[A-Za-z_]\w*", equation.formula))
    defined = set(re.findall(r"([A-Za-z_]\w*) = ", equation.formula))
    assert set(equation.symbols) <= words
    assert words <= {*equation.symbols, *defined, *OPERATIONS}
    assert tuple(equation.meanings) == equation.symbols


def names(derivations: tuple[Derivation, ...]) -> set[str]:
    """Return the equations of some derivations and of all they build on."""
    inner = [each.derivation for root in derivations for each in root.inputs if each.derivation is not None]
    return {root.name for root in derivations} | (names(tuple(inner)) if inner else set())


def test_inner_steps_are_reached_from_the_figure() -> None:
    plan = plan_of("pretrain_70b_512_h100")
    activations = explained(plan, "memory.parts.activations")
    inner = {"activation_bytes", "layer_activation", "kept_norms", "kept_projections", "dense_feed_forward"}
    assert inner <= names(activations.derivations)
    largest = explained(plan, "computation.parts.compute").terms[0]
    assert largest.derivation is not None
    assert "gemm_rate" in names((largest.derivation,))


def test_every_step_shows_the_numbers_it_was_given() -> None:
    """A matrix product is aligned in two dimensions, each by an evaluation of its own."""
    kernel = explained(plan_of("pretrain_70b_512_h100"), "computation.parts.compute").terms[0].derivation
    assert kernel is not None
    rate = {entry.name: entry for entry in kernel.inputs}["rate"].derivation
    assert rate is not None
    given = {entry.name: entry for entry in rate.inputs}
    share = given["reach"].derivation
    assert share is not None
    aligned = [entry.derivation.inputs[0].value for entry in share.inputs if entry.derivation]
    assert sorted(aligned) == sorted((given["n"].value, given["k"].value))


def test_one_equation_serves_several_parts() -> None:
    plan = plan_of("pretrain_70b_512_h100")
    keys = ("cost.usd", "cost.usd_per_million_tokens")
    job, million = (explained(plan, key).derivations[0] for key in keys)
    assert job.name == million.name == "job_usd"
    assert job.inputs != million.inputs


@pytest.mark.parametrize(
    ("name", "key", "says"),
    [
        ("gpt2_rtx_3060", "computation.parts.pipeline_bubble", "one pipeline stage"),
        ("gpt2_rtx_3060", "computation.parts.tensor_parallel", "tensor parallelism is 1"),
        ("vllm_70b_4_h100", "memory.parts.gradients", "nothing is trained"),
        ("vllm_70b_4_h100", "computation.estimated_train_time_seconds", "length is open: give tokens"),
        ("offloaded", "memory.parts.optimizer", "host memory"),
        ("linear_regression", "computation.parts.attention", "no attention"),
        ("gpt2_rtx_3060", "memory.parts.kv_cache", "only serving"),
        ("gpt2_rtx_3060", "memory.capacity_bytes", "catalogue: row rtx-3060-12gb"),
    ],
)
def test_what_no_formula_says_is_said_in_words(name: str, key: str, says: str) -> None:
    assert says in " ".join(explained(plan_of(name), key).remarks)


def test_an_interval_says_which_runs_it_comes_from() -> None:
    plan = plan_of("pretrain_70b_512_h100")
    assert "publishers left out" in explained(plan, "computation.step_seconds").interval_basis
    assert not explained(plan, "model.parameters").interval_basis


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ("memory.reserved_bytes.high", "memory.reserved_bytes"),
        ("memory.activations", "memory.parts.activations"),
        ("model.forward_flops_per_token", "model.forward_flops"),
    ],
)
def test_ends_and_short_forms_of_a_key_are_understood(asked: str, key: str) -> None:
    assert explained(plan_of("gpt2_rtx_3060"), asked).key == key


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(PlanError) as caught:
        explain(plan_of("gpt2_rtx_3060"), "memory.parts.activation")
    assert "memory.parts.activations" in caught.value.hint


@pytest.mark.parametrize("name", ["pretrain_70b_512_h100", "vllm_70b_4_h100", "deep_learning", "gpt2_rtx_3060"])
@pytest.mark.parametrize(
    "key", ["memory.reserved_bytes", "computation.step_seconds", "computation.mfu", "cost.usd_per_million_tokens"]
)
def test_a_lever_improves_the_figure_by_what_it_says(name: str, key: str) -> None:
    catalog, plan = load_catalog(), plan_of(name)
    found = explain(plan, key)
    if found.lever is None:
        return
    after = found.lever.after
    change = {found.lever.field: int(after) if after.isdigit() else after, **found.lever.also}
    moved = candidate(plan, change, catalog)
    change = (figure(moved.estimate, key).number or 0.0) / (found.explanation.figure.number or 1.0) - 1.0
    assert change == pytest.approx(found.lever.change)
    assert change * METRICS[key].better > 0


@pytest.mark.parametrize("size", [2, 4, 8])
def test_lever_and_advice_try_the_same_plan(size: int) -> None:
    """Sequence parallelism and the replicas follow from a tensor parallel size, whoever asks."""
    plan = Plan.model_validate({"model": {"name": "llama-3-8b"}, "hardware": {"name": "h100-sxm-80gb", "devices": 8}})
    catalog = load_catalog()
    resolved = resolve_plan(plan, catalog)
    case = EstimatedPlan(plan, resolved, estimate_resolved(resolved, catalog), catalog)
    moved = case.evaluate(case.same_batch({"parallelism.tp": size}))
    parallel = {"tp": size}
    written = plan.model_copy(
        update={"parallelism": ParallelismSection.model_validate(parallel), "training": resolved.plan.training}
    )
    asked = answer(written).estimate
    for key in ("computation.step_seconds", "memory.reserved_bytes", "computation.tokens_per_second"):
        assert figure(moved.estimate, key).number == pytest.approx(figure(asked, key).number), key


def test_a_lever_leaves_the_wish_as_it_is() -> None:
    found = explain(plan_of("pretrain_70b_512_h100"), "computation.step_seconds")
    assert found.lever is not None
    assert found.lever.field not in {"training.seq_len", "training.global_batch", "training.tokens"}
    assert explain(plan_of("gpt2_rtx_3060"), "model.parameters").lever is None


def test_nothing_is_recorded_outside_a_recording() -> None:
    plan = plan_of("gpt2_rtx_3060")
    with recording() as record:
        pass
    answer(plan)
    assert not record.derivations


def names_of_origins() -> set[str]:
    """Return every name that symbols of an equation may come from, without the part after the dot of ``named``."""
    catalog = load_catalog()
    hardware = [name for plan in PLANS for name in _given(plan, catalog)]
    return {*hardware, owned_hour_usd.__name__, *(each.__name__ for each in equations(estimates, fleet))}


def _given(name: str, catalog: Catalog) -> Iterator[str]:
    cluster = resolve_plan(with_auto_resolved(plan_of(name), None, catalog), catalog).cluster
    yield from (each.name for each in given_numbers(cluster, catalog))


def test_origins_name_equations_and_given_numbers() -> None:
    known = names_of_origins()
    for each in equations(estimates, fleet):
        for symbol in each.meanings:
            names = each.meaning(symbol)[2]
            for name in (names,) if isinstance(names, str) else names:
                assert name in known or name.partition(".")[0] in known, (each.__name__, name)


@pytest.mark.parametrize("name", [*example_names(), *PLANS])
def test_no_result_is_put_in_without_its_origin(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an equation gave and another is given as it is opens into it; else its name is missing."""
    results: dict[int, tuple[object, str]] = {}
    cut: set[tuple[str, str, str]] = set()
    evaluate = Equation.__call__

    def evaluated(equation: Equation[...], *arguments: object, **named: object) -> object:
        put_in = inspect.signature(equation.function).bind(*arguments, **named).arguments
        for symbol, value in put_in.items():
            giver = results.get(id(value), (None, ""))[1]
            if giver and not equation.meaning(symbol)[2]:
                cut.add((giver, equation.__name__, symbol))
        result = evaluate(equation, *arguments, **named) * 1.0
        results[id(result)] = (result, equation.__name__)
        return result

    monkeypatch.setattr(Equation, "__call__", evaluated)
    catalog = load_catalog()
    resolved = resolve_plan(with_auto_resolved(plan_of(name), None, catalog), catalog)
    estimate = estimate_resolved(resolved, catalog, recorded=True)
    for key in keys(estimate):
        figure(estimate, key)
    assert not cut
