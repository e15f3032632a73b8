"""Stores that runs are copied into: a database in bulk, or any MLflow server."""
