"""Champions: which model serves each customer, since when, and why."""
