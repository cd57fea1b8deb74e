from .nvidia.smi_queries import LIST as LIST
from .nvidia.smi_queries import MEMORY_ERRORS as MEMORY_ERRORS
from .vendor import GpuSample as GpuSample
