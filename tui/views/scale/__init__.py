"""The view of scaling: what more devices bring, and what they cost."""
