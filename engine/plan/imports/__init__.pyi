from .imported import Imported as Imported
from .imported import import_plan as import_plan
from .owners import is_of_tool as is_of_tool
from .owners import known_tools as known_tools
from .owners import refuse_files_of_tools as refuse_files_of_tools
from .setting import ImportedSetting as ImportedSetting
from .texts import kept_plan as kept_plan
