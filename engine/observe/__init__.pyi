from .command import RunningCommand as RunningCommand
from .exporting import Outlets as Outlets
from .processes import ProcessSample as ProcessSample
from .processes import TreeSample as TreeSample
