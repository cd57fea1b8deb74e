"""What moves a figure of a plan most, and what would make it surer."""
