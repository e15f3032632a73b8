"""The copy in MLflow: every study and every trial as a run, never in a search's way.

    child    beside a search: starts `tuning mlflow sync RUN --follow`, waits for it at the end
    follow   that command: lists parts, copies what is new, waits out an outage, once or as long as the run goes on
    copier   parts into a store, in any order, any number of times
    stores   a protocol of plain runs, and two kinds of store: rows in one transaction, for databases whose tables
             can be filled; and MLflow's public client, for servers and everything else
    models   winners and releases as MLflow models

Importing `child` and `follow` loads neither MLflow nor Ray.
"""
