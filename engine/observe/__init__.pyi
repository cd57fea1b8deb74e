from .command import RunningCommand as RunningCommand
from .metrics_export import Outlets as Outlets
from .processes import ProcessSample as ProcessSample
from .processes import TreeSample as TreeSample
