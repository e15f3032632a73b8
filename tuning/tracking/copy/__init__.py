"""How records reach MLflow, while a run lasts or afterwards."""
