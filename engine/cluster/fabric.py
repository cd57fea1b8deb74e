"""What surrounds a device: how many share a node's fast link, and the network between nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capacity_tui.engine.catalog import Accelerator, Catalog, Fabric, Instance, Link
from capacity_tui.engine.errors import CatalogError, Place, PlanError
from capacity_tui.engine.machine import Origin, Provenance

# One step of a collective between nodes is no shorter than this, whatever the link: software and switches (NCCL).
LEAST_HOP_SECONDS = 5e-6
GBIT = 1e9 / 8.0
_MACHINE, _OTHER = "machine", "other"


@dataclass(frozen=True, slots=True)
class Network:
    """The network between nodes.

    Attributes:
        name: what it is called.
        link: its row, for latency and, where no figure is given, bandwidth.
        node_bandwidth: B/s in one direction of a whole node; None where the link's row says it.
        ports_per_node: ports of a node; one a device where None.
        known: how it is known.
    """

    name: str
    link: Link
    known: Provenance
    node_bandwidth: float | None = None
    ports_per_node: int | None = None

    @property
    def hop_seconds(self) -> float:
        """Seconds of one step of a collective between nodes."""
        return max((self.link.latency_us or 0.0) * 1e-6, LEAST_HOP_SECONDS)

    def device_bandwidth(self, per_node: int) -> float:
        """Return the share of one of ``per_node`` devices of a node, B/s in one direction."""
        if self.node_bandwidth is not None:
            return self.node_bandwidth / per_node
        ports = self.ports_per_node or per_node
        share = {"node": 1.0 / per_node, "port": ports / per_node}.get(self.link.per, 1.0)
        return self.link.per_direction_gbs * 1e9 * share


def fabric_of(row: Accelerator, catalog: Catalog) -> Fabric:
    """Return what is usually built around an accelerator."""
    found = (
        fabric
        for fabric in catalog.fabrics.values()
        if row.generation in fabric.generations and (row.link_gbs or 0.0) >= fabric.least_link_gbs
    )
    return next(found, catalog.fabrics[_OTHER])


def usual_network(fabric: Fabric, catalog: Catalog) -> Network:
    """Return the network that usually joins such nodes: an assumption."""
    link = catalog.links.find(fabric.network)
    known = Provenance("assumed", f"the usual network: {link.name}")
    return Network(link.name, link, known, ports_per_node=fabric.ports_per_node)


def machine_network(catalog: Catalog) -> Network:
    """Return the network assumed between machines like this one, of which nothing is known."""
    return usual_network(catalog.fabrics[_MACHINE], catalog)


def instance_network(row: Instance, catalog: Catalog) -> Network:
    """Return the network between instances: that of their accelerators, else their host's.

    Of an instance that states neither, the usual front-end network is assumed, never a faster one.
    """
    told = Provenance("catalogue", f"instance {row.id}")
    if row.network_link is not None:
        link = catalog.links.find(row.network_link)
        total = None if row.rdma_gbit is None else row.rdma_gbit * GBIT
        return Network(_at(link.name, row.rdma_gbit), link, told, total)
    usual = usual_network(catalog.fabrics[_OTHER], catalog)
    if row.network_gbit is None:
        return replace(usual, name=f"{usual.name} ({row.provider} states none)")
    return Network(_at("Ethernet (TCP)", row.network_gbit), usual.link, told, row.network_gbit * GBIT)


def named_network(name: str, ports_per_node: int | None, catalog: Catalog, field: str) -> Network:
    """Return the network that a field of a plan names.

    Raises:
        PlanError: no link has that name.
    """
    try:
        link = catalog.links.find(name)
    except CatalogError as error:
        raise PlanError(error.title, error.detail, error.hint, Place(field=field)) from error
    origin: Origin = "measured" if link.measured else "catalogue"
    known = Provenance(origin, f"link {link.id}, named in {field}")
    return Network(link.name, link, known, ports_per_node=ports_per_node)


def _at(name: str, gbit: float | None) -> str:
    return name if gbit is None else f"{name}, {gbit:g} Gbit/s a node"
