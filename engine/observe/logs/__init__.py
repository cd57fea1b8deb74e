"""What logs of runs tell: figures of steps, read from lines, files and pages that grow while they are read."""
