"""The format in which weights are served that the plan gives no format for: as the model is published."""

from __future__ import annotations

from capacity_tui.engine.catalog import Catalog, format_in_name
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.timing.kernels import why_not_read
from capacity_tui.engine.models.readers import read_model_file
from capacity_tui.engine.plan import UNQUANTIZED, ModelSection, Plan
from capacity_tui.engine.printable import printable


def released_format(model: ModelSection, catalog: Catalog) -> tuple[str, str]:
    """Return the format of a model's published weights, and where it comes from; the latter empty for 16 bits.

    A file says it itself, a name of a model hub by its words, as ``Llama-3.3-70B-Instruct-AWQ``; else the catalogue.

    Args:
        model: the model of a plan.
        catalog: facts.
    """
    if model.config is not None:
        stored = read_model_file(model.config).weights
        return (stored, "as stored in the file") if stored else (UNQUANTIZED, "")
    name = model.name or ""
    named = format_in_name(name)
    if named is not None:
        return named, f"as {printable(name)} says"
    row_id = catalog.architectures.find_id(name)
    weights = None if row_id is None else catalog.architectures[row_id].weights
    return (UNQUANTIZED, "") if weights is None else (weights, f"as {row_id} is released")


def served_weights(plan: Plan, device: Device, catalog: Catalog) -> tuple[str, str]:
    """Return the format in which a plan serves its weights, and why; the reason is empty where nothing is assumed.

    What the catalogue says is published, and the engine cannot read on the device, is taken as converted to 16 bits.

    Args:
        plan: the plan, whose weights may be open.
        device: what serves them.
        catalog: facts.
    """
    if plan.inference.weights is not None:
        return plan.inference.weights, ""
    name, why = released_format(plan.model, catalog)
    row = catalog.quantizations.find(name)
    is_chosen = plan.model.config is not None or format_in_name(plan.model.name or "") is not None
    unread = "" if is_chosen or not why else why_not_read(row, plan.inference.engine, device, catalog)
    if unread:
        return UNQUANTIZED, f"weights in {UNQUANTIZED}: released in {row.name}, and {unread}"
    return name, f"weights in {row.name}: {why}" if why else ""
