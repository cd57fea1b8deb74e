"""What screens show, as plain frozen data, for whoever makes it of the engine's answers and whoever paints it."""
