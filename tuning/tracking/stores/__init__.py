"""Where the copy is written: a database in bulk, or any MLflow server."""
