from .answer import Needed as Needed
from .budget import GROWING as GROWING
from .furthest import READS as READS
from .need import need as need
from .need import solved_path as solved_path
