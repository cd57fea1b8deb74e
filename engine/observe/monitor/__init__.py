"""A run that is watched: what its log and samples come to, beside what was predicted."""
