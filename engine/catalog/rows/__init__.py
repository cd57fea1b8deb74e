"""What a row of each table says; every field is read by code or marked informational."""
