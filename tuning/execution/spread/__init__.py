"""Placement "spread": a Tune trial is a trial, for studies that are large by themselves.

Several studies share one Tuner: `search` holds one searcher per study, `scheduling` one scheduler per study and
model family. What happens to a study is decided in `live`, which knows nothing of Ray; its events are the journal
that a resumed driver replays.
"""
