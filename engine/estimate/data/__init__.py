"""How the data of a training reach its devices: bytes, reading, decoding, and what nothing hides of it."""
