"""Which of the two kinds of store a tracking URI gets."""

from __future__ import annotations

from tuning.tracking.identity import Search
from tuning.tracking.stores.store import Store


def open_store(tracking_uri: str, search: Search, artifacts: str | None) -> Store:
    """The bulk writer for a database whose schema we tested, MLflow's public client for everything else.

    artifacts: where a database's experiment keeps its artifacts when we create it (a path or a URI).
    """
    if tracking_uri.split(":")[0].split("+")[0] in ("sqlite", "postgresql"):
        from tuning.tracking.stores.database import prepare, revision, usable_uri
        from tuning.tracking.stores.sql_store import TESTED_REVISIONS, BulkStore

        tracking_uri = usable_uri(tracking_uri)
        found = revision(tracking_uri)
        if found is None:
            prepare(tracking_uri, artifacts)
            found = revision(tracking_uri)
        if found in TESTED_REVISIONS:
            return BulkStore(tracking_uri, search, artifacts)
    from tuning.tracking.stores.client_store import ClientStore, reach

    reach(tracking_uri)
    return ClientStore(tracking_uri, search, artifacts)
