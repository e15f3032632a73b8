"""A million customers, as a user would search them: plan, run, a kill and a resume, leaderboard, models, MLflow."""
