from .finetuning import base_format as base_format
from .finetuning import trained_counts as trained_counts
from .resolve import transformer_run as transformer_run
from .run import TransformerRun as TransformerRun
