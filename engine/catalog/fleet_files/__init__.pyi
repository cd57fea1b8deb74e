from .files import fleet_files_below as fleet_files_below
from .files import guide_instances as guide_instances
from .files import is_fleet_file as is_fleet_file
from .files import words as words
from .instance_entries import Remark as Remark
