"""The machine around its accelerators: processor, memory, disks, network, power."""
