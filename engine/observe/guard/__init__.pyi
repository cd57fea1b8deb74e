from .placeholders import CHECKPOINT as CHECKPOINT
from .placeholders import filled_words as filled_words
from .placeholders import values_of as values_of
