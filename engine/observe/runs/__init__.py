"""Runs that go on now and runs that are past, as files that any other process can follow."""
