"""The copy in MLflow: every study and every trial as a run, never in a search's way.

    writer     owns a child process and hands it names of record parts; never blocks, never raises
    process    that child: reads parts, writes runs, waits out an outage; only here MLflow is loaded
    sync       the same child, given all parts of a run
    copying    what the child does: parts into a store, in any order, any number of times
    bulk       a store: rows in one transaction, for databases whose schema our tests know
    client     a store: MLflow's public client, for servers and everything else

Importing this package, `writer` and `sync` loads neither MLflow nor Ray.
"""
