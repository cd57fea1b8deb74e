"""The public names of the nodes of a cluster, for type checkers: part of those in ``api``, which loads them."""

from __future__ import annotations

from capacity_tui.engine.nodes.inventory import hardware as _inventory_hardware
from capacity_tui.engine.nodes.inventory import inventory as _inventory_inventory
from capacity_tui.engine.nodes.inventory import kept_clusters as _inventory_kept_clusters
from capacity_tui.engine.nodes.inventory.detecting import detect_cluster as detect_cluster
from capacity_tui.engine.nodes.inventory.inventory import Inventory as Inventory
from capacity_tui.engine.nodes.inventory.plain_inventory import change_parts as change_parts
from capacity_tui.engine.nodes.inventory.plain_inventory import inventory_as_dict as inventory_as_dict
from capacity_tui.engine.nodes.inventory.plain_inventory import inventory_parts as inventory_parts
from capacity_tui.engine.nodes.jobs import launch as _jobs_launch
from capacity_tui.engine.nodes.jobs import proposal as _jobs_proposal
from capacity_tui.engine.nodes.jobs import proposing as _jobs_proposing
from capacity_tui.engine.nodes.jobs import queue as _jobs_queue
from capacity_tui.engine.nodes.jobs import submitting as _jobs_submitting
from capacity_tui.engine.nodes.jobs.batch_script import SlurmOptions as SlurmOptions
from capacity_tui.engine.nodes.jobs.job_texts import job_line as job_line
from capacity_tui.engine.nodes.jobs.job_texts import jobs_as_dict as jobs_as_dict
from capacity_tui.engine.nodes.jobs.job_texts import jobs_parts as jobs_parts
from capacity_tui.engine.nodes.jobs.job_texts import proposal_as_dict as proposal_as_dict
from capacity_tui.engine.nodes.jobs.job_texts import proposal_parts as proposal_parts
from capacity_tui.engine.nodes.jobs.known_jobs import KnownJobs as KnownJobs
from capacity_tui.engine.nodes.jobs.known_jobs import known_jobs as known_jobs
from capacity_tui.engine.nodes.jobs.proposing import JobWish as JobWish
from capacity_tui.engine.nodes.jobs.queue import queued_jobs as queued_jobs
from capacity_tui.engine.nodes.launchers.choosing import chosen_launcher as chosen_launcher
from capacity_tui.engine.nodes.launchers.launcher import Launcher as Launcher
from capacity_tui.engine.nodes.launchers.launcher import NodeAnswer as NodeAnswer
from capacity_tui.engine.nodes.launchers.launcher import Order as Order
from capacity_tui.engine.nodes.occupancy import folding as _occupancy_folding
from capacity_tui.engine.nodes.occupancy import occupancy as _occupancy_occupancy
from capacity_tui.engine.nodes.occupancy.available import change_to_available as change_to_available
from capacity_tui.engine.nodes.occupancy.folding import MapRow as MapRow
from capacity_tui.engine.nodes.occupancy.folding import node_map as node_map
from capacity_tui.engine.nodes.occupancy.kept_occupancy import kept_occupancy as kept_occupancy
from capacity_tui.engine.nodes.occupancy.occupancy import Occupancy as Occupancy
from capacity_tui.engine.nodes.occupancy.occupancy import own_occupancy as own_occupancy
from capacity_tui.engine.nodes.occupancy.slurm_occupancy import slurm_occupancy as slurm_occupancy
from capacity_tui.engine.nodes.sampling import sampling as _sampling_sampling
from capacity_tui.engine.nodes.sampling.link_facts import LinkFacts as LinkFacts
from capacity_tui.engine.nodes.sampling.link_facts import keep_link as keep_link
from capacity_tui.engine.nodes.sampling.node_collectives import NodeGroup as NodeGroup
from capacity_tui.engine.nodes.sampling.node_kernels import NodeKernels as NodeKernels
from capacity_tui.engine.nodes.sampling.node_kernels import SampledKind as SampledKind
from capacity_tui.engine.nodes.sampling.node_kernels import keep_measured_kind as keep_measured_kind
from capacity_tui.engine.nodes.sampling.sampling import SampledNetwork as SampledNetwork
from capacity_tui.engine.nodes.sampling.sampling import sample_network as sample_network
from capacity_tui.engine.nodes.search import searching as _search_searching
from capacity_tui.engine.nodes.search.searching import search_on_ray as search_on_ray

CLUSTER_NAME = _inventory_kept_clusters.DEFAULT_NAME
keep_cluster = _inventory_kept_clusters.keep
kept_cluster = _inventory_kept_clusters.kept
kept_cluster_names = _inventory_kept_clusters.kept_names
cluster_hardware = _inventory_hardware.described
cluster_changes = _inventory_inventory.changes_of
ALL_NODES = _occupancy_folding.ALL
NODE_STATES = _occupancy_folding.STATES
NETWORK_SIZES = _sampling_sampling.SIZES
QUICK_NETWORK_SIZES = _sampling_sampling.QUICK_SIZES
SharedAnswer = _search_searching.Shared
planned_nodes = _occupancy_occupancy.planned
JOB_LAUNCHERS = _jobs_launch.LAUNCHERS
JobLauncher = _jobs_launch.Launcher
JobProposal = _jobs_proposal.Proposal
SlurmJob = _jobs_queue.QueuedJob
follow_job = _jobs_submitting.followed
propose_job = _jobs_proposing.propose
submit_job = _jobs_submitting.submit
