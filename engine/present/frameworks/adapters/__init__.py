"""Files of tools that fine-tune low-rank adapters."""
