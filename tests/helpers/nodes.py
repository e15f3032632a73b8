"""A run on a cluster of three nodes, of which one is lost and another one gained on the way.

    python tests/helpers/nodes.py RUN

The head has no CPUs. The objective waits at trial CHAOS_HOLD until the new node works, too.
Prints a line of JSON: the recorded trials, and how many nodes are alive at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

HOLD = int(os.environ["CHAOS_HOLD"])
PATIENCE_S = 300


def main() -> None:
    import ray
    from builders import SPACE
    from chaos import parents_of, wait_for
    from ray.cluster_utils import Cluster

    from tuning import TuneRunner

    run = Path(sys.argv[1])
    # In a folder of its own: Ray's other users on this machine shall not find this cluster. Sockets need a short path.
    os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="nodes-", dir="/tmp")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    first, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)

    log = Path(os.environ["CHAOS_LOG"])

    def alive() -> int:
        return sum(node["Alive"] for node in ray.nodes())

    results: list[Any] = []

    def search() -> None:
        fields: dict[str, Any] = {"objective": "chaos:paced", "metric": "loss", "mode": "min", "search_space": SPACE}
        fields |= {"data": str(run.parent / "data" / "*.csv"), "trials": 40, "seed": 5, "slots": 2, "scheduler": "fifo"}
        fields |= {"placement": "packed"}  # on the cluster from the first trial on
        results.append(TuneRunner(**fields, mlflow=False).run(str(run), progress=False))

    searching = threading.Thread(target=search)
    searching.start()  # nodes are made in the main thread: they set signal handlers
    wait_for(lambda: len(parents_of(log)) >= HOLD and len(set(parents_of(log))) == 2, PATIENCE_S, "trials")
    cluster.remove_node(first, allow_graceful=False)
    wait_for(lambda: alive() == 2, PATIENCE_S, "the loss of a node")
    cluster.add_node(num_cpus=1)
    wait_for(lambda: alive() == 3, PATIENCE_S, "a new node")
    searching.join()
    result = results[0]
    print(json.dumps({"trials": len(result.trial_records), "alive": alive()}))
    ray.shutdown()
    cluster.shutdown()
    shutil.rmtree(os.environ["RAY_TMPDIR"], ignore_errors=True)


if __name__ == "__main__":
    main()
