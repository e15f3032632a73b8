"""What the run has written for itself (frames, divided tables), in Ray's object store as well.

Workers of a spread study want the same rows: an actor reads each file once, when somebody first asks, and all others
map it from the object store instead of reading and decoding it again. The files stay the truth: a resume begins with
them, and a worker for whom the actor or an object is lost, or for whom there was no room, reads the file.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tuning.data.loading import read_table
from tuning.data.partition import FOLDER
from tuning.errors import CustomerError
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

SHARE = 0.25  # of the object store, at most; the rest is Tune's and the user's
PATIENCE_S = 60.0  # for a file that is being read or comes from another machine


class SharedTables:
    """The actor: owns what it has put into the object store, which is freed when it ends.

    paths: files that it may read. room: bytes of the object store that it may fill.
    """

    def __init__(self, paths: Iterable[str], room: float) -> None:
        self._paths, self._room = frozenset(paths), room
        self._refs: dict[str, list[Any]] = {}

    def rows(self, path: str) -> list[Any]:
        """The reference to a file's rows, in a list, so that it travels and not the rows; empty without room."""
        import ray

        if path not in self._refs:
            table = read_table(path) if path in self._paths else None
            self._refs[path] = []
            if table is not None and table.nbytes <= self._room:
                self._room -= table.nbytes
                self._refs[path] = [ray.put(table)]
        return self._refs[path]


def shared_tables(directory: RunDirectory, studies: Iterable[Study]) -> Any:
    """The actor for these studies' files in the run's own data folder; None when there is none of them."""
    import ray

    own = f"{directory.locate(FOLDER).partition('?')[0]}/"
    paths = {path for study in studies for path in study.customer.files if path.startswith(own)}
    if not paths:
        return None
    room = SHARE * ray.cluster_resources().get("object_store_memory", 0.0)
    return ray.remote(SharedTables).options(num_cpus=0).remote(paths, room)


@contextlib.contextmanager
def sharing(directory: RunDirectory, studies: Iterable[Study]) -> Iterator[Any]:
    """The actor until the end of the context; trainables travel by cloudpickle, which alone would keep it for ever."""
    import ray

    found = shared_tables(directory, studies)
    try:
        yield found
    finally:
        if found is not None:
            with contextlib.suppress(Exception):  # the cluster may be gone, and the actor with it
                ray.kill(found)


def fetch(found: Any, path: str) -> pa.Table | None:
    """The rows of a file from the object store; None when they are to be read from the file."""
    import ray

    if found is None:
        return None
    try:
        refs = ray.get(found.rows.remote(path), timeout=PATIENCE_S)
        return ray.get(refs[0], timeout=PATIENCE_S) if refs else None
    except (ray.exceptions.RayError, CustomerError) as error:
        logger.info("read from its file: %s", error)
        return None
