"""This process: Ray, the Tuner, signals, budgets, progress."""
