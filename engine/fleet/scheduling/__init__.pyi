from .schedule import Schedule as Schedule
from .schedule import ScheduledJob as ScheduledJob
from .schedule import read_entries as read_entries
from .schedule import schedule as schedule
