from .deltas import change_text as change_text
from .together import estimated_changes as estimated_changes
