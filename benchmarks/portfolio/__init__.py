"""Making the shipped portfolios: many configurations on many tables, and which few of them are enough."""
