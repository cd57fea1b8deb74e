"""Classical algorithms: sizes, limits and messages a user would notice."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Answer, estimate_plan, resolve_plan
from capacity_tui.engine.estimate.estimate import work_of
from capacity_tui.engine.estimate.resolve import unsaid
from capacity_tui.engine.models import CLASSICAL_SPECS
from capacity_tui.engine.plan import plan_fields
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present import result_as_dict

CPU = "CPU_8C_3.5Ghz_baseline"
ALGORITHMS = sorted(CLASSICAL_SPECS)
VARIANTS = [
    *((name, {}) for name in ALGORITHMS),
    ("xgboost_like", {"method": "exact"}),
    ("xgboost_like", {"max_leaves": 512, "max_depth": 12}),
    ("xgboost_like", {"n_classes": 5}),
    ("pca_svd", {"method": "randomized", "n_components": 20}),
    ("pca_svd", {"method": "covariance"}),
    ("pca_svd", {"method": "full"}),
    ("logistic_regression_sgd", {"batch_size": 32}),
    ("random_forest", {"max_depth": 8, "max_features": "all"}),
]


def fitted(name: str, hardware: str = CPU, **spec: object) -> Answer:
    return estimate_plan(plan_from_data({"model": {"name": name, "spec": spec}, "hardware": {"name": hardware}}))


def seconds(answer: Answer) -> float:
    return float(answer.estimate.computation.step_seconds.value)


def peak(answer: Answer) -> float:
    return float(answer.estimate.memory.reserved_bytes.value)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_every_algorithm_answers_in_full(name: str, options: dict[str, object]) -> None:
    answer = fitted(name, **options)
    result = result_as_dict(answer.plan, answer.estimate)
    assert answer.plan.task == "fit"
    assert result["model"]["complexity"].startswith("O(")
    assert result["model"]["forward_flops_per_sample"] > 0
    assert result["computation"]["tokens_per_second"] is None
    assert result["computation"]["estimated_train_time_seconds"]["value"] == pytest.approx(seconds(answer))
    assert sum(result["memory"]["parts"].values()) == pytest.approx(peak(answer), abs=10)
    assert {"data", "work", "model"} <= result["memory"]["parts"].keys()
    assert answer.plan.model.spec["n_jobs"] == 8


@pytest.mark.parametrize(
    ("name", "spec", "parameters", "flops"),
    [
        ("linear_regression_normal", {"n": 1000, "p": 20}, 21, 40),
        ("linear_regression_qr", {"n": 1000, "p": 20}, 21, 40),
        ("logistic_regression_newton", {"n": 1000, "p": 20}, 21, 44),
        ("svm_linear", {"n": 1000, "p": 20}, 21, 40),
        ("svm_rbf", {"n": 1000, "p": 20, "support_share": 0.5}, 500 * 21 + 1, 500 * 70),
        ("decision_tree", {"n": 10**6, "p": 20, "max_depth": 5}, 3 * 63, 10),
        ("random_forest", {"n": 10**6, "p": 20, "max_depth": 5, "trees": 10}, 3 * 63 * 10, 100),
        ("xgboost_like", {"n": 10**6, "p": 20, "max_depth": 6, "trees": 10}, 3 * 127 * 10, 120),
        ("kmeans", {"n": 1000, "p": 20, "k": 8}, 160, 320),
        ("pca_svd", {"n": 1000, "p": 20, "n_components": 5}, 120, 220),
    ],
)
def test_sizes_by_hand(name: str, spec: dict[str, object], parameters: float, flops: float) -> None:
    model = fitted(name, **spec).estimate.model
    assert model.parameters == parameters
    assert model.forward_flops == flops
    assert model.unit == "sample"


@pytest.mark.parametrize(
    ("name", "spec", "flops"),
    [
        ("linear_regression_normal", {}, 10**5 * 200**2 + 200**3 / 3),
        ("linear_regression_qr", {}, 2 * 10**5 * 200**2 + 2 * 200**3),
        ("logistic_regression_newton", {"iterations": 5}, 5 * (2 * 10**5 * 200**2 + 200**3 / 3)),
        ("kmeans", {"k": 50, "iterations": 20}, (20 * 50 + 49 * 5) * 2 * 10**5 * 200),
        ("pca_svd", {"method": "full"}, 6 * 10**5 * 200**2 + 20 * 200**3),
    ],
)
def test_training_flops_are_those_of_the_textbook(name: str, spec: dict[str, object], flops: float) -> None:
    counted = fitted(name, n=10**5, p=200, **spec).estimate.computation.model_flops_per_step
    assert counted == pytest.approx(flops, rel=0.1)


@settings(max_examples=40, deadline=None)
@given(
    # The library's own choice for a table changes with its shape, from slow ways to fast ones.
    variant=st.sampled_from([each for each in VARIANTS if each != ("pca_svd", {})]),
    n=st.integers(100, 10**7),
    p=st.integers(2, 2000),
    factor=st.integers(2, 10),
)
def test_more_rows_are_never_faster_or_smaller(
    variant: tuple[str, dict[str, object]], n: int, p: int, factor: int
) -> None:
    name, options = variant
    few, many = fitted(name, n=n, p=p, **options), fitted(name, n=n * factor, p=p, **options)
    assert seconds(many) >= seconds(few) * (1 - 1e-9)
    assert peak(many) >= peak(few) * (1 - 1e-9)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_cores_precision_and_zeros_save(name: str) -> None:
    spec = {"n": 200_000, "p": 100}
    one, all_cores = fitted(name, n_jobs=1, **spec), fitted(name, **spec)
    assert seconds(all_cores) <= seconds(one)
    assert peak(fitted(name, precision="fp32", **spec)) <= peak(fitted(name, precision="fp64", **spec))
    assert seconds(fitted(name, density=0.01, **spec)) <= seconds(all_cores) * (1 + 1e-9)
    assert peak(fitted(name, density=0.01, **spec)) < peak(all_cores)


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"rows": 5}, "model.spec.rows", "unknown key"),
        ({"n_cluster": 5}, "model.spec.n_cluster", "did you mean n_clusters?"),
        ({"n": -1}, "model.spec.n", "allowed"),
        ({"n": 0}, "model.spec.n", "allowed: 1 to"),
        ({"precision": "int8"}, "model.spec.precision", "fp32, fp64"),
        ({"n_clusters": "many"}, "model.spec.n_clusters", ""),
        ({"n_jobs": 64}, "model.spec.n_jobs", "allowed: 1 to 8"),
        ({"n_jobs": "auto"}, "model.spec.n_jobs", "auto"),
        ({"density": 2}, "model.spec.density", "0 to 1"),
    ],
)
def test_a_wrong_parameter_is_named(spec: dict[str, object], field: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        fitted("kmeans", **spec)
    assert caught.value.place.field == field
    assert words in caught.value.one_line()


def test_counts_and_spellings() -> None:
    answer = fitted("Linear Regression QR", n="1M", p="2k", precision="float32")
    assert answer.plan.model.spec == {"n": 10**6, "p": 2000, "density": 1.0, "precision": "fp32", "n_jobs": 8}


def test_what_was_not_given_is_named() -> None:
    def sizes(**spec: object) -> dict[str, object]:
        plan = plan_from_data({"model": {"name": "decision_tree", "spec": spec}, "hardware": {"name": CPU}})
        return {entry.key: entry.value for entry in unsaid(resolve_plan(plan, load_catalog()), {})}

    assert sizes() == {"model.spec.n": 100_000, "model.spec.p": 100}
    assert sizes(n=10, p=2) == {}


def test_iterations_that_the_data_decide_widen_the_range_until_they_are_given() -> None:
    """Clusters that lie apart take 2 to 13 iterations, data without any 147 to 300."""
    still_open, given = (fitted("kmeans", **spec).estimate.computation for spec in ({}, {"iterations": 30}))
    assert float(still_open.step_seconds.value) == float(given.step_seconds.value)
    assert float(still_open.step_seconds.high) >= float(
        fitted("kmeans", iterations=200).estimate.computation.step_seconds.value
    )
    assert float(still_open.step_seconds.low) < 0.5 * float(given.step_seconds.low)


def test_an_rbf_svm_says_how_many_rows_are_reasonable() -> None:
    answer = fitted("svm_rbf", n=200_000, p=100)
    warning = next(note for note in answer.estimate.warnings if note.code == "scales_badly")
    assert "200 000 rows" in warning.detail
    assert "svm_linear" in warning.detail
    limit = load_catalog().algorithms["svm_rbf"].reasonable_seconds
    assert seconds(answer) > limit
    smaller = fitted("svm_rbf", n=20_000, p=100)
    assert seconds(smaller) < limit
    assert "scales_badly" not in {note.code for note in smaller.estimate.warnings}


def test_normal_equations_warn_of_what_they_cannot_do() -> None:
    def codes(**spec: object) -> set[str]:
        return {note.code for note in fitted("linear_regression_normal", **spec).estimate.warnings}

    assert codes(n=10**5, p=100) == set()
    assert codes(n=10**5, p=100, precision="fp32") == {"ill_conditioned"}
    assert codes(n=10**5, p=100, condition=1e8) == {"ill_conditioned"}
    assert codes(n=10**5, p=100, condition=1e3) == set()
    assert "singular" in codes(n=100, p=1000)
    assert "scales_badly" in codes(n=10**6, p=60_000)


def test_memory_that_a_machine_lacks_is_a_warning_with_the_rows_it_holds() -> None:
    answer = fitted("pca_svd", "RTX_3060_fp16", n=10**8, p=100)
    assert answer.estimate.fits is False
    assert answer.estimate.bottleneck.kind == "capacity"
    assert "too_large" in {note.code for note in answer.estimate.warnings}


def test_one_device_and_one_core_do_the_work() -> None:
    data = {"model": {"name": "svm_rbf"}, "hardware": {"name": CPU, "devices": 4}}
    codes = {note.code for note in estimate_plan(plan_from_data(data)).estimate.warnings}
    assert {"one_device", "one_core"} <= codes


def test_a_gpu_without_published_double_precision_says_so() -> None:
    with pytest.raises(PlanError, match="fp64"):
        fitted("pca_svd", "TPU_v4_pod", precision="fp64")


def test_histograms_beat_exact_splits_on_many_rows() -> None:
    spec = {"n": 10**6, "p": 50}
    assert seconds(fitted("xgboost_like", **spec)) < seconds(fitted("xgboost_like", method="exact", **spec))


def test_efficiency_overrides_the_reachable_share() -> None:
    def taken(efficiency: float | None) -> float:
        hardware = {"name": CPU, "efficiency": efficiency}
        data = {"model": {"name": "linear_regression_normal", "spec": {"p": 2000}}, "hardware": hardware}
        return seconds(estimate_plan(plan_from_data(data)))

    assert taken(0.9) < taken(None) < taken(0.1)


def test_a_random_projection_beats_all_singular_values() -> None:
    spec = {"n": 100_000, "p": 2000, "n_components": 10}
    assert (
        seconds(fitted("pca_svd", method="randomized", **spec)) < seconds(fitted("pca_svd", method="full", **spec)) / 5
    )


@pytest.mark.parametrize(
    ("table", "method"),
    [
        ({"n": 200_000, "p": 100}, "covariance"),
        ({"n": 10_000, "p": 2000, "n_components": 10}, "randomized"),
        ({"n": 400, "p": 300, "n_components": 10}, "full"),
        ({"n": 10_000, "p": 2000}, "full"),
    ],
)
def test_components_are_found_as_the_library_does_unless_a_method_is_given(
    table: dict[str, object], method: str
) -> None:
    assert seconds(fitted("pca_svd", **table)) == seconds(fitted("pca_svd", method=method, **table))


def test_a_cache_that_holds_the_kernel_saves_time() -> None:
    spec = {"n": 30_000, "p": 500}
    assert seconds(fitted("svm_rbf", cache_mb=10_000, **spec)) < seconds(fitted("svm_rbf", **spec))


def test_fields_show_the_parameters_of_the_algorithm() -> None:
    plan = plan_from_data({"model": {"name": "K-Means", "spec": {"n_clusters": 5}}})
    fields = {field.path: field for field in plan_fields(plan, "classical")}
    assert fields["model.spec.k"].value == 5
    assert fields["model.spec.n"].value == 100_000
    assert fields["model.spec.n"].knob.unit == "rows"
    assert not any(path.startswith("training.") for path in fields)


def test_work_is_made_of_operators_that_take_time() -> None:
    resolved = resolve_plan(plan_from_data({"model": {"name": "pca_svd"}, "hardware": {"name": CPU}}), load_catalog())
    work = work_of(resolved, load_catalog())
    assert work is not None
    assert all(math.isfinite(float(each.rate)) and each.rate > 0 for each in work.operators)


def test_tall_tables_are_factorized_at_the_speed_of_memory() -> None:
    # Panels of 32 columns of 20,000 rows lie in caches, those of ten times as many do not.
    for name, options in (("linear_regression_qr", {}), ("pca_svd", {"method": "full"})):
        few, many = (seconds(fitted(name, n=n, p=100, n_jobs=1, **options)) for n in (20_000, 200_000))
        assert many > 12 * few


def test_boosting_grows_a_tree_for_each_class_from_three_on() -> None:
    one, two, five = (fitted("xgboost_like", trees=1000, n_classes=classes) for classes in (1, 2, 5))
    assert seconds(one) == seconds(two)
    assert 4.5 * seconds(two) < seconds(five) <= 5 * seconds(two)
    sizes = [float(answer.estimate.memory.parts["model"]) for answer in (two, five)]
    assert sizes[1] == pytest.approx(5 * sizes[0])
    assert peak(five) > peak(two)


def test_a_fit_uses_all_sockets_of_a_machine() -> None:
    model = {"name": "random_forest", "spec": {"n": 1e7, "p": 50}}
    one, two = (
        estimate_plan(plan_from_data({"model": model, "hardware": {"name": "xeon-8480", "devices": n, "per_node": n}}))
        for n in (1, 2)
    )
    assert 0.5 < seconds(two) / seconds(one) < 0.95
    assert two.plan.model.spec["n_jobs"] == 2 * one.plan.model.spec["n_jobs"]
    assert not any(note.code == "one_device" for note in two.estimate.warnings)


def test_a_fit_uses_all_memory_that_a_gpu_shares_and_all_sockets_of_a_server() -> None:
    fits = fitted("xgboost_like", "apple-m2-max-38", n=1_000_000, p=20).estimate
    serves = estimate_plan(
        plan_from_data({"model": {"name": "llama-3.2-1b"}, "task": "infer", "hardware": {"name": "apple-m2-max-38"}})
    )
    assert fits.memory.capacity_bytes > serves.estimate.memory.capacity_bytes
    assert not fits.memory.host_bytes
    two = {"hardware": {"name": "xeon-8480", "devices": 2}, "model": {"name": "kmeans"}}
    assert estimate_plan(plan_from_data(two)).estimate.basis.devices == "2 x xeon-8480"
