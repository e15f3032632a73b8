"""Several processes that train one trial: XGBoost's actors, XGBoost-Ray's and the workers of Ray Train."""
