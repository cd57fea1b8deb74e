from .axes import Axis as Axis
from .axes import Floats as Floats
from .axes import Values as Values
from .axes import powers_of_two as powers_of_two
from .space import BLOCK as BLOCK
from .space import LazyBlock as LazyBlock
