"""Short measurements of this machine: memory, arithmetic, accelerators, disks, network."""
