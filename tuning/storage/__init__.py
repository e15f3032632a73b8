"""How a run's bytes are placed, whole and durable, on any filesystem."""
