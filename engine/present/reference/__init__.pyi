from .schemas import schema_names as schema_names
from .schemas import schema_text as schema_text
