"""How NVIDIA accelerators are found and read."""
