"""A million customers, as a user would tune them: plan, run, a kill and a resume, leaderboard, models, MLflow."""
