"""Clusters of Kubernetes through ``kubectl``: nodes and what pods have of them, queues of Kueue, and what it prints."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
