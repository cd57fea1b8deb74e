"""What a training keeps and moves: data, checkpoints, caches, main memory."""
