from .tools import ADAPTED as ADAPTED
from .tools import bears_on_a_run as bears_on_a_run
from .tools import option_name as option_name
from .tools import tool as tool
from .values import Agreed as Agreed
from .values import agreed as agreed
from .values import is_option as is_option
from .values import takes as takes
