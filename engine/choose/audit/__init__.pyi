from .audit import Audit as Audit
from .audit import Finding as Finding
from .audit import audit as audit
