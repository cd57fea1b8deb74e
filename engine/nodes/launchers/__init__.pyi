from .choosing import chosen_launcher as chosen_launcher
from .launcher import Launcher as Launcher
