from .alarms import Alarm as Alarm
from .comparison import STEP as STEP
from .comparison import TOKENS as TOKENS
from .comparison import Compared as Compared
from .run_monitor import RunGauges as RunGauges
from .run_monitor import RunMonitor as RunMonitor
from .run_monitor import RunState as RunState
