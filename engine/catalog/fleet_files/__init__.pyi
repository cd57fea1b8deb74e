from .field_reader import Remark as Remark
from .files import fleet_files_below as fleet_files_below
from .files import is_fleet_file as is_fleet_file
from .workload_entries import guide_instances as guide_instances
from .workload_entries import words as words
