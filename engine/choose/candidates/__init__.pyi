from .candidate import Candidate as Candidate
from .candidate import EstimatedPlan as EstimatedPlan
from .reached import CheckedConstraint as CheckedConstraint
