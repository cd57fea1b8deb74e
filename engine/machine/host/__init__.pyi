from .disk import is_on_a_share as is_on_a_share
from .main_memory import probe_memory as probe_memory
from .main_memory import shared_memory as shared_memory
from .system import probe_power as probe_power
