"""The nodes of a cluster and the placement of a plan on them, in the words of the screen; an example where none is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.nodes import (
    ALL_NODES,
    NODE_STATES,
    MapRow,
    NodeState,
    Occupancy,
    change_to_available,
    kept_cluster,
    kept_cluster_names,
    kept_occupancy,
    node_map,
    planned_occupancy,
    slurm_occupancy,
)
from capacity_tui.engine.nodes import planned as planned_nodes
from capacity_tui.engine.nodes.jobs import queued_jobs
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import level_texts, placement_remarks
from capacity_tui.engine.solve import EstimatedPlan, placed
from capacity_tui.engine.units import format_number, format_seconds
from capacity_tui.tui.shown.results import Table, TableColumn, TableRow
from capacity_tui.tui.shown.scale import Clustered, NodeMap, NodesRow

MADE_UP = "EXAMPLE, made up: yours appears here where Slurm is, or after capacity-tui cluster detect"


def example_cluster(device: str) -> tuple[Occupancy, tuple[TableRow, ...]]:
    """Return its nodes, as if they had devices of some kind, and its jobs."""
    text = (files("capacity_tui.profiles") / "examples" / "cluster" / "cluster.json").read_text("utf-8")
    rows = json.loads(text)
    nodes = tuple(
        NodeState(
            node["name"],
            device,
            rows["devices_per_node"],
            busy=node.get("busy", 0),
            down=node.get("down", 0),
            holders=(node["rack"],),
            note=node.get("note", ""),
        )
        for node in rows["nodes"]
    )
    jobs = tuple(TableRow(tuple(cells), cells[3] == "running") for cells in rows["jobs"])
    return Occupancy(nodes, ("node", "rack"), MADE_UP), jobs


_LEVELS = (
    TableColumn("level", is_number=False),
    TableColumn("divides", is_number=False),
    TableColumn("busy"),
    TableColumn("of", rank=2, is_number=False),
    TableColumn("link", rank=1, is_number=False),
)
_JOBS = (
    TableColumn("job"),
    TableColumn("name", rank=2, is_number=False),
    TableColumn("partition", rank=4, is_number=False),
    TableColumn("state", is_number=False),
    TableColumn("nodes", rank=1),
    TableColumn("time", rank=3),
    TableColumn("reason", rank=5, is_number=False),
)
_NOTHING_FREE = "no free nodes hold a replica of the plan"
_NO_JOBS, _RUNNING = "No jobs.", "RUNNING"
_NO_CLUSTER = (
    "No cluster is reachable from here: these are the plan's devices. Where Slurm is installed, its nodes and jobs "
    "appear here; capacity-tui cluster detect saves nodes as hardware that plans can name."
)
_NO_QUEUE = "No Slurm here: these nodes were detected before; who uses them is not known."


def clustered(case: EstimatedPlan, plan: Plan) -> Iterator[Clustered]:
    """Yield a plan on its cluster: where it lies at once, then the nodes as they are now."""
    placed_plan = placed(case)
    levels = () if placed_plan.placement is None else level_texts(placed_plan.placement)
    rows = (TableRow((one.name, one.divides, one.busy, one.holds, one.link), one.is_hottest) for one in levels)
    shown = Clustered(Table(_LEVELS, tuple(rows), tuple(placement_remarks(placed_plan))))
    yield shown
    words = _NodeWords(case, plan)
    nodes, jobs, why = _seen_nodes(words, case.catalog)
    own = planned_occupancy(case.resolved.cluster, case.plan.hardware.groups)
    if nodes is None and why == _NO_CLUSTER and len(own.nodes) == 1:
        example, jobs = example_cluster(case.resolved.cluster.device.id)
        yield replace(shown, nodes=words.map(words.laid(example), MADE_UP), queue=Table(_JOBS, jobs, (MADE_UP,)))
        return
    yield replace(shown, nodes=words.map(nodes or own), queue=Table(_JOBS, jobs, () if jobs else (why,)))


def _seen_nodes(words: _NodeWords, catalog: Catalog) -> tuple[Occupancy | None, tuple[TableRow, ...], str]:
    """Return the nodes as they are now, or else as they were kept, the jobs there, and why there are none of either."""
    fault = ""
    try:
        if (live := slurm_occupancy(catalog)) is not None:
            return words.laid(live), tuple(_queue()), _NO_JOBS
    except CapacityError as error:
        fault = error.one_line()
    try:
        kept = words.kept()
    except CapacityError as error:
        return None, (), fault or error.one_line()
    return kept, (), fault or (_NO_CLUSTER if kept is None else _NO_QUEUE)


def _queue() -> Iterator[TableRow]:
    """Yield the jobs of everyone that have not ended."""
    for job in queued_jobs(everyone=True):
        if not job.is_over:
            # What runs is described by how long it has, what waits by when it may start.
            time = format_seconds(job.seconds) if job.seconds else (job.start or "").replace("T", " ")
            cells = (job.id, job.name, job.partition, job.state.casefold(), str(job.nodes), time, job.reason)
            yield TableRow(cells, job.state == _RUNNING)


class _NodeWords:
    """Says nodes and what a plan takes of them in words."""

    def __init__(self, case: EstimatedPlan, plan: Plan) -> None:
        self._plan = plan
        self._cluster = case.resolved.cluster
        self._groups = case.plan.hardware.groups
        self._known = case.catalog.accelerators

    def kept(self) -> Occupancy | None:
        """Return the nodes of the kept cluster that the plan names, or else of the only one if it can hold the plan."""
        names = kept_cluster_names()
        named = self._plan.hardware.name
        if named not in names and len(names) != 1:
            return None
        laid = self.laid(kept_occupancy(kept_cluster(named if named in names else names[0])))
        holds = sum(node.planned for node in laid.nodes) == int(self._cluster.devices)
        return laid if holds or named in names else None

    def laid(self, occupancy: Occupancy) -> Occupancy:
        kinds = {group.name for group in self._groups} if self._cluster.mix else {self._cluster.device.id}
        has_any = any(node.hardware in kinds for node in occupancy.nodes)
        source = occupancy.source if has_any else f"{occupancy.source}; the plan runs on other hardware"
        return replace(planned_nodes(occupancy, int(self._cluster.devices), kinds), source=source)

    def map(self, occupancy: Occupancy, made_up: str = "") -> NodeMap:
        """Return the rows of all levels; of nodes that are made up none can be taken."""
        placed_plan = node_map(occupancy)
        has_kinds = len(placed_plan.rows[ALL_NODES]) > 1
        everything = self._row(placed_plan.whole, made_up, has_kinds=False)
        rows = {
            level: (everything, *(self._row(row, made_up, has_kinds=has_kinds) for row in rows))
            for level, rows in placed_plan.rows.items()
        }
        return NodeMap(tuple(rows), rows, placed_plan.usual, occupancy.source, is_example=bool(made_up))

    def _row(self, row: MapRow, made_up: str, *, has_kinds: bool) -> NodesRow:
        counts = (f"{format_number(row.counts[state])} {state}" for state in NODE_STATES if row.counts[state])
        change = None
        if not made_up:
            change = change_to_available(self._plan, self._cluster.device.id, row.nodes, self._known)
        return NodesRow(
            name=row.name,
            counts=" · ".join(counts),
            cells=row.cells,
            hardware=row.hardware if has_kinds else "",
            notes=row.notes if len(row.nodes) > 1 else tuple(node.note for node in row.nodes if node.note),
            change=change or {},
            refusal="" if change else made_up or _NOTHING_FREE,
        )
