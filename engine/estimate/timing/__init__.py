"""How long operators and collectives take."""
