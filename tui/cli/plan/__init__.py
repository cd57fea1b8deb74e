"""Commands about plans and what they choose among: estimates, searches, fleets, catalogues, storage, files."""
