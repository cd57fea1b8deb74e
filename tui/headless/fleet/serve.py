"""``fleet serve``: the cheapest fleet that serves a load inside limits of latency."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import changed_plan, machine_for
from capacity_tui.tui.headless.progress import progress
from capacity_tui.tui.headless.questions import interrupted, names_of

if TYPE_CHECKING:
    from capacity_tui.engine.fleet.serving import ServingQuestion
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.plan.line import PlanFlags

NO_ANSWER = 1


@click.command()
@click.argument("file", required=False, metavar="[PLAN]")
@plan_flags
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value of the plan first; may be repeated.")  # fmt: skip
@click.option("--rate", metavar="REQ/S", help="Requests a second; of a load that varies, at its peak.")
@click.option("--ttft", metavar="TIME", help="Most time to the first token, such as 2s; the plan's own by default.")
@click.option("--tpot", metavar="TIME", help="Most time of each token after it, such as 50ms; likewise.")
@click.option("--percentile", metavar="PERCENT", type=float, help="Requests that must keep each limit; 95 by default.")
@click.option("--hardware", multiple=True, metavar="NAMES", shell_complete=completion.devices,
              help="Instances or devices to choose among: ids with commas, a vendor or cloud for all of theirs, "
                   "instances for all that are rented. By default the plan's own.")  # fmt: skip
@click.option("--spread", metavar="SHARE", type=float,
              help="Standard deviation of prompts and answers over their mean; the plan's own by default.")  # fmt: skip
@click.option("--load", metavar="FILE|SHAPE",
              help="How the load varies over a day: a shape (even, office, consumer, global), or a file of rates "
                   "in even parts of it. Adds the fleet over a day, fixed and autoscaled.")  # fmt: skip
@click.option("--startup", metavar="TIME", help="Time until a new replica answers; assumed by default.")
@click.option("--scale-down", metavar="TIME", help="Time for which fewer must be enough before one is given up.")
@click.option("--reserve", metavar="SHARE", type=float, help="Replicas beyond what the load needs, such as 0.1.")
@click.option("--seed", metavar="N", type=click.IntRange(0), default=1, show_default=True,
              help="Of the random requests: the same seed gives the same answer.")  # fmt: skip
@config_option
@format_option("table", "json", "yaml")
@output_option
def serve(
    file: str | None,
    flags: PlanFlags,
    settings: tuple[str, ...],
    hardware: tuple[str, ...],
    load: str | None,
    config: Path | None,
    wanted: str | None,
    output: Path | None,
    **said: str | float | None,
) -> int:
    """Find the cheapest fleet that serves a load: replicas, batch, instance and its price.

    Requests are simulated as they come at random and are worked in batches that change with every step. Limits hold
    for a percentile of them; step times are the estimate's, and its range gives a range of replicas. Exit code 1
    where nothing keeps the limits.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.fleet.serving import serve as served
    from capacity_tui.engine.present.fleet import serving_as_dict, serving_parts
    from capacity_tui.tui.headless.tables.layout import rich_parts

    (name,) = sources_of((file,) if file else (), flags)
    plan = changed_plan(source_of(name, flags).plan(), settings)
    question = _question(plan, names_of(hardware), load, said)
    with interrupted() as stopped, progress() as shown:

        def tell(text: str) -> None:
            shown.show(lambda: text)

        answer = served(question, load_catalog(fleet_files=config), machine_for(plan), stopped, tell)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(serving_as_dict(answer), form, output)
    else:
        write(as_text(rich_parts(serving_parts(answer)), output is not None), output)
    return NO_ANSWER if answer.best is None else 0


def _question(
    plan: Plan, hardware: tuple[str, ...], load: str | None, said: dict[str, str | float | None]
) -> ServingQuestion:
    """Return what options ask of a plan, which says itself what they leave out."""
    from capacity_tui.engine.errors import PlanError
    from capacity_tui.engine.fleet.serving import ServingQuestion, load_curve
    from capacity_tui.engine.units import parse_quantity

    def seconds(option: str, otherwise: float | None = None) -> float | None:
        text = said[option]
        return otherwise if text is None else parse_quantity(str(text), "s")

    inference = plan.inference
    curve = None if load is None else load_curve(load)
    rate = inference.request_rate if said["rate"] is None else parse_quantity(str(said["rate"]), "req/s")
    if rate is None and curve is not None and curve.peak > 1:
        rate = curve.peak
    if rate is None:
        raise PlanError("no rate of requests", hint="say --rate 20, or set inference.request_rate in the plan")
    percentile = said["percentile"]
    share, reserve, seed = said["spread"], said["reserve"], said["seed"]
    return ServingQuestion(
        plan,
        rate,
        seconds("ttft", inference.ttft_seconds),
        seconds("tpot", inference.tpot_seconds),
        float(inference.percentile if percentile is None else percentile),
        hardware,
        None if share is None else float(share),
        curve,
        seconds("startup"),
        seconds("scale_down"),
        None if reserve is None else float(reserve),
        int(seed or 0),
    )
