from .callback import GuardCallback as GuardCallback
