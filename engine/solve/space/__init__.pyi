from .grid import Axis as Axis
from .grid import Floats as Floats
from .grid import Values as Values
from .grid import powers_of_two as powers_of_two
from .space import BLOCK as BLOCK
from .space import LazyBlock as LazyBlock
