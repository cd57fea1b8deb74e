from .agreement import Agreed as Agreed
from .agreement import agreed as agreed
from .agreement import is_option as is_option
from .agreement import takes as takes
from .tools import ADAPTED as ADAPTED
from .tools import bears_on_a_run as bears_on_a_run
from .tools import option_name as option_name
from .tools import tool as tool
