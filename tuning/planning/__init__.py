"""What would run, where, at what cost, and what cannot."""
