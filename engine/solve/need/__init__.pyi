from .line_question import answer_line_question as answer_line_question
from .line_question import question_of_line as question_of_line
from .names import GROWING as GROWING
from .need import LAYERS as LAYERS
from .need import READS as READS
from .need import Needed as Needed
from .need import need as need
from .need import solved_path as solved_path
