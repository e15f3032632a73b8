"""Which model families there are, and how they train, grow and are saved."""
