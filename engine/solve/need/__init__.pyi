from .asked import answer_asked as answer_asked
from .asked import asked_question as asked_question
from .names import GROWING as GROWING
from .need import READS as READS
from .need import Needed as Needed
from .need import need as need
from .need import solved_path as solved_path
