from .ray_workers import Shared as Shared
from .ray_workers import search_on_ray as search_on_ray
