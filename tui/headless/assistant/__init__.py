"""The commands as tools of coding assistants, by the Model Context Protocol."""
