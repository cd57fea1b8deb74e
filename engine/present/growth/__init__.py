"""How growth is told: laws, what they say of other sizes, and settings that were ranked."""
