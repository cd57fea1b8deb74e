from .lever import Lever as Lever
from .measurements import Narrowing as Narrowing
from .swing import Swing as Swing
from .tornado import Sensitivity as Sensitivity
from .tornado import sensitivity as sensitivity
from .unknowns import RATIO as RATIO
