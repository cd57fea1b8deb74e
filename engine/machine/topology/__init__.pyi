from .pci import LEVELS as LEVELS
from .tree import topology_lines as topology_lines
