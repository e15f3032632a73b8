"""A run on a cluster of three nodes with one CPU each, which a trial fills: a node with one of its actors is lost.

    python tests/helpers/group_nodes.py RUN RECOVERY

The head has no CPUs. The metric waits at the first trial's second step until the node is lost. A new one comes when
that trial has ended, for the second one. Prints a line of JSON: state and reason of each trial, and what is left over.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

PATIENCE_S = 300
ACTOR_START_S = 60.0  # a process of Ray takes a quarter of that on a busy machine
METRIC = """
import time
from pathlib import Path
import numpy as np

CALLS = []
FOLDER = Path({folder!r})

def loss(y, said):
    CALLS.append(1)
    if len(CALLS) == 4:
        (FOLDER / "waiting").touch()
        while not (FOLDER / "lost").exists():
            time.sleep(0.1)
    return float(np.mean((y - said) ** 2))
"""


@contextmanager
def small_nodes() -> Iterator[tuple[Any, list[Any]]]:
    """A cluster of three nodes with one CPU each, and those nodes; this process is connected to it."""
    import ray
    from ray.cluster_utils import Cluster

    # In a folder of its own: Ray's other users on this machine shall not find this cluster. Sockets need a short path.
    os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="nodes-", dir="/tmp")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    yield cluster, nodes
    ray.shutdown()
    cluster.shutdown()
    shutil.rmtree(os.environ["RAY_TMPDIR"], ignore_errors=True)


def main() -> None:
    with small_nodes() as (cluster, nodes):
        lose_one(cluster, nodes, Path(sys.argv[1]), sys.argv[2])


def lose_one(cluster: Any, nodes: list[Any], run: Path, recovery: str) -> None:
    """The run."""
    import numpy as np
    import pandas as pd
    import ray
    from chaos import wait_for
    from worker_groups import left_over, nodes_of

    from tuning import RunResult, TuneRunner
    from tuning.basics.timing import Timing

    folder = run.parent
    (folder / "mine.py").write_text(METRIC.format(folder=str(folder)))
    values = np.round(np.random.default_rng(0).normal(size=(400, 3)) * 4) / 4
    space = {"n_estimators": {"type": "constant", "value": 60}, "max_depth": {"type": "choice", "values": [2, 3]}}
    fields: dict[str, Any] = {
        "data": {"one": pd.DataFrame(values, columns=["a", "b", "y"])},
        "target": "y",
        "models": [{"estimator": "xgboost", "actors": 2, "recovery": recovery, "search_space": space}],
        "metric": f"{folder}/mine.py:loss",
        "mode": "min",
        "split": {"folds": 2},
        "algorithm": "grid",
        "scheduler": "fifo",
        "ensemble": "none",
        "portfolio": "none",
        "trials": 2,
        "slots": 3,
        "mlflow": False,
    }

    def search() -> None:
        runner = TuneRunner(**fields)
        runner.timing = Timing(actor_start_s=ACTOR_START_S, parts_s=0.0)
        runner.run(str(run), progress=False)

    def alive() -> int:
        return sum(node["Alive"] for node in ray.nodes())

    def recorded() -> int:
        return len(RunResult(str(run)).trial_records)

    searching = threading.Thread(target=search)
    searching.start()  # nodes are made in the main thread: they set signal handlers
    wait_for((folder / "waiting").exists, PATIENCE_S, "the second step")
    victim = nodes_of("GroupActor")[-1]
    cluster.remove_node(next(node for node in nodes if node.node_id == victim), allow_graceful=False)
    wait_for(lambda: alive() == 3, PATIENCE_S, "the loss of a node")
    (folder / "lost").touch()
    wait_for(lambda: recorded() == 1, PATIENCE_S, "the first trial's end")
    cluster.add_node(num_cpus=1)
    searching.join()
    trials = [(trial.state, str(trial.reason or ""), len(trial.steps)) for trial in RunResult(str(run)).trial_records]
    print(json.dumps({"trials": trials, "left_over": left_over()}))


if __name__ == "__main__":
    main()
