"""What would run, where, and what cannot."""
