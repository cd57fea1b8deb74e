from .nvidia.nvidia_smi import LIST as LIST
from .nvidia.nvidia_smi import MEMORY_ERRORS as MEMORY_ERRORS
from .vendor import GpuSample as GpuSample
