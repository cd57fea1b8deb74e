"""The catalogues and example plans, as YAML that a person can read and edit."""
