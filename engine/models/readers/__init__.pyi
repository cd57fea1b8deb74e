from .huggingface import read_model_file as read_model_file
from .huggingface import shape_from_huggingface as shape_from_huggingface
