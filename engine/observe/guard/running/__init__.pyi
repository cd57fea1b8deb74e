from .guarding import begin as begin
from .guarding import new_order as new_order
from .guarding import take_up as take_up
from .order import Order as Order
from .starting import newest_checkpoint as newest_checkpoint
from .starting import start_of as start_of
from .supervisor import Supervisor as Supervisor
from .told import Listeners as Listeners
