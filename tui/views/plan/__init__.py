"""The plan screen: its panels, what they do, and how estimates become what they show."""
