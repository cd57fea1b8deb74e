from .kubectl import Kubectl as Kubectl
from .kubectl import KubectlError as KubectlError
from .kubectl import LineStream as LineStream
from .kueue import device_queues as device_queues
from .nodes import Kubernetes as Kubernetes
from .resources import Container as Container
from .resources import devices_of as devices_of
