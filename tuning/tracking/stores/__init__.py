"""Stores that runs are copied into: a database in bulk, or any MLflow server."""

from __future__ import annotations

from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.stores.store import Store

BULK = ("sqlite", "postgresql")


def open_store(tracking_uri: str, search: TrackedSearch, artifacts: str | None) -> Store:
    """Return the bulk writer for a database whose tables it can fill, MLflow's public client for everything else.

    artifacts: where a database's experiment keeps its artifacts when we create it (a path or a URI).
    """
    note = None
    if tracking_uri.partition(":")[0].partition("+")[0].lower() in BULK:
        from tuning.tracking.stores.database import initialized, prepare, usable_uri
        from tuning.tracking.stores.sql_store import BulkStore
        from tuning.tracking.stores.tables import OtherTablesError

        tracking_uri = usable_uri(tracking_uri)
        if not initialized(tracking_uri):
            prepare(tracking_uri, artifacts)
        try:
            return BulkStore(tracking_uri, search, artifacts)
        except OtherTablesError as other:
            note = (
                f"In this MLflow database {other}, so runs are written by MLflow's client, which takes about 100 times "
                "as long as in bulk: 15 to 20 ms for a trial."
            )
    from tuning.tracking.stores.client_store import ClientStore

    return ClientStore(tracking_uri, search, artifacts, note)
