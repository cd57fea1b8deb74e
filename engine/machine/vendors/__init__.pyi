from .nvidia import LIST as LIST
from .nvidia import MEMORY_ERRORS as MEMORY_ERRORS
from .vendor import GpuSample as GpuSample
