"""The copy in MLflow: every study and every trial as a run, never in a search's way.

    copy/live    beside a search: starts `tuning mlflow sync RUN --follow`, waits for it at the end
    copy/sync    that command: the copy of a run, once or as long as the run goes on
    copy/loop    lists parts, copies what is new, waits out an outage
    copy/copier  parts into a store, in any order, any number of times
    stores       a protocol of plain runs, and two kinds of store: rows in one transaction, for databases whose tables
                 can be filled; and MLflow's public client, for servers and everything else

Importing `copy.live` and `copy.sync` loads neither MLflow nor Ray.
"""
