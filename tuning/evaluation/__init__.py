"""What a configuration is worth on one customer, and who wins."""
