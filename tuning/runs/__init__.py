"""A run directory: started, resumed, read."""
