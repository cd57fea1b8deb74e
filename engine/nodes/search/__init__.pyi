from .searching import Shared as Shared
from .searching import search_on_ray as search_on_ray
