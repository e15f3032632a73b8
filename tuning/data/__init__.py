"""Who the customers are, and where and how their rows are read."""
