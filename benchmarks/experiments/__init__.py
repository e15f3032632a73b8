"""Experiments whose answers are written down in docs/decisions/; kept so that they can be run again."""
