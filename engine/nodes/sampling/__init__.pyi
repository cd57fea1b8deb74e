from .link_facts import keep_link as keep_link
from .node_collectives import NodeGroup as NodeGroup
from .node_kernels import NodeKernels as NodeKernels
from .node_kernels import SampledKind as SampledKind
from .node_kernels import keep_measured_kind as keep_measured_kind
from .sampling import QUICK_SIZES as QUICK_SIZES
from .sampling import SIZES as SIZES
from .sampling import sample_network as sample_network
