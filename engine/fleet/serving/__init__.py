"""Replicas under a load: their steps one by one, how many keep limits of latency, and fleets over a day."""
