from .storage_plan import StoragePlan as StoragePlan
from .storage_plan import storage_plan as storage_plan
