"""Replicas under a load: their steps one by one, how many keep limits of latency, and fleets over a day."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
