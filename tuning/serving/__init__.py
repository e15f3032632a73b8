"""Which model serves each customer, and how that changes when rows come."""
