"""Jobs with deadlines on a fleet: in which order, on which machines, how late, how far from the best."""
