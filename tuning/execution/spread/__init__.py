"""Placement "spread": a Tune trial is a trial, for studies that are large by themselves.

Several studies share one Tuner with each other and with batches (`tuning.execution.run_queue`). What happens to a study
is decided in `spread_study`, which knows nothing of Ray. A resumed driver goes on from records and checkpoints.
"""
