from .names import GROWING as GROWING
from .need import need as need
from .need import solved_path as solved_path
from .outermost import READS as READS
from .outermost import Needed as Needed
