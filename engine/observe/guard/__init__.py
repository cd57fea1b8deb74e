"""Runs that are guarded: trouble recognised, answered by a bounded change of the plan, and started again."""
