"""What happens on a worker, packed or spread, and what a crash costs."""
