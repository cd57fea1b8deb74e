from .adapters import adapter_parameters as adapter_parameters
from .blocks import Layer as Layer
from .blocks import LayerList as LayerList
from .specs import NetworkSpec as NetworkSpec
from .specs import network_spec_type as network_spec_type
