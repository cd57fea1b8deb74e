from .deltas import change_text as change_text
from .together import estimate_changes as estimate_changes
