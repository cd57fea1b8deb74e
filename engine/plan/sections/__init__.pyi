from .adapter import FULL as FULL
from .data import DataPhase as DataPhase
from .data import DataSection as DataSection
from .inference import UNQUANTIZED as UNQUANTIZED
from .inference import InferenceSection as InferenceSection
from .training import LENGTHS as LENGTHS
from .training import NO_MASTER as NO_MASTER
from .training import TrainingSection as TrainingSection
