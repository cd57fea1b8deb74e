from capacity_tui.engine.estimate.serving.resolve import why_not_read as why_not_read

from .attention import attention_in_place_of as attention_in_place_of
from .attention import attention_rate as attention_rate
from .collectives import members_in_node as members_in_node
from .collectives import pacing_level as pacing_level
from .passes import PhaseTime as PhaseTime
from .roofline import gemm_rate as gemm_rate
from .roofline import operator_seconds as operator_seconds
from .schedule import StepTime as StepTime
from .schedule import phase_time as phase_time
