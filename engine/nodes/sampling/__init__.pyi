from .node_collectives import QUICK_SIZES as QUICK_SIZES
from .node_collectives import SIZES as SIZES
from .node_collectives import NodeGroup as NodeGroup
from .node_collectives import keep_link as keep_link
from .node_collectives import sample_network as sample_network
from .node_kernels import NodeKernels as NodeKernels
from .node_kernels import SampledKind as SampledKind
from .node_kernels import keep_measured_kind as keep_measured_kind
