"""The view of runs: going and past, beside what was predicted."""
