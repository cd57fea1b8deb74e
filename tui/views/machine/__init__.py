"""The screen of this machine."""
