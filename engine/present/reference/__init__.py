"""Pages and schemas of plan files and catalogues, made of the metadata of their fields."""
