"""Jobs of a plan: the batch script, its submission, the queue, and what accounting says afterwards."""
