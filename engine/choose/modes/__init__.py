"""Conservative, balanced and extreme: what fills the settings that a plan leaves open."""
