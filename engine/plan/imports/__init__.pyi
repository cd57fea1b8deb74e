from .imported import Imported as Imported
from .imported import import_plan as import_plan
from .options import is_of_tool as is_of_tool
from .options import known_tools as known_tools
from .options import refuse_files_of_tools as refuse_files_of_tools
from .setting import ImportedSetting as ImportedSetting
from .texts import kept_plan as kept_plan
