"""The one MLflow run that sums up all studies."""
