from .blocks import Layer as Layer
from .blocks import LayerList as LayerList
from .blocks import adapter_parameters as adapter_parameters
from .specs import NetworkSpec as NetworkSpec
from .specs import Surroundings as Surroundings
from .specs import network_spec_type as network_spec_type
