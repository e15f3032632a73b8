"""A giant beside small customers on three nodes with one CPU each, of which one is lost while the giant's trial fills
them. No other one comes until the run has ended; then it is resumed with one trial more for each customer.

    python tests/helpers/lost_for_good.py RUN

Prints a line of JSON for the run and one for its resume: status, reason and trials by customer, state and reason of
the giant's trials, and what is left over.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

PATIENCE_S = 400
ROOM_S, ACTOR_START_S = 8.0, 30.0
LARGE = 400  # rows of the giant; its second trial waits in its second step until the node is lost
METRIC = f"""
import time
from pathlib import Path
import numpy as np

FOLDER = Path({{folder!r}})

def loss(y, said):
    if len(y) > {LARGE // 4}:
        (FOLDER / f"call-{{{{time.monotonic_ns()}}}}").touch()
        if len(list(FOLDER.glob("call-*"))) == 2 * 6 + 4:
            (FOLDER / "waiting").touch()
            while not (FOLDER / "lost").exists():
                time.sleep(0.1)
    return float(np.mean((y - said) ** 2))
"""


def main() -> None:
    import ray
    from chaos import wait_for
    from group_nodes import small_nodes
    from worker_groups import left_over, nodes_of

    from tuning import RunResult, TuneRunner
    from tuning.basics.timing import Timing

    run, folder = Path(sys.argv[1]), Path(sys.argv[1]).parent
    runner = TuneRunner(**fields(folder))
    runner.timing = Timing(actor_start_s=ACTOR_START_S, room_s=ROOM_S, parts_s=0.0)
    with small_nodes() as (cluster, nodes):
        searching = threading.Thread(target=runner.run, args=(str(run),), kwargs={"progress": False})
        searching.start()  # nodes are made in the main thread: they set signal handlers
        wait_for((folder / "waiting").exists, PATIENCE_S, "the second trial")
        victim = nodes_of("GroupActor")[-1]
        cluster.remove_node(next(node for node in nodes if node.node_id == victim), allow_graceful=False)
        wait_for(lambda: sum(node["Alive"] for node in ray.nodes()) == len(nodes), PATIENCE_S, "the loss of a node")
        (folder / "lost").touch()
        searching.join()
        show(RunResult(str(run)), left_over())
        cluster.add_node(num_cpus=1)
        runner = TuneRunner(**{**fields(folder), "trials": 4})
        show(runner.run(str(run), progress=False, resume=True), left_over())


def fields(folder: Path) -> dict[str, Any]:
    """Of the definition; three trials for each customer."""
    import numpy as np
    import pandas as pd

    def customer(name: str, rows: int) -> dict[str, Any]:
        values = np.round(np.random.default_rng(rows).normal(size=(rows, 3)) * 4) / 4
        pd.DataFrame(values, columns=["a", "b", "y"]).to_csv(folder / f"{name}.csv", index=False)
        return {"path": str(folder / f"{name}.csv")}

    (folder / "mine.py").write_text(METRIC.format(folder=str(folder)))
    constants = {"model": "xgboost", "actors": 2, "n_estimators": 60, "max_depth": 3}
    space: dict[str, Any] = {name: {"type": "constant", "value": value} for name, value in constants.items()}
    space["learning_rate"] = {"type": "float", "low": 0.1, "high": 0.5, "default": 0.3}
    return {
        "data": {"giant": customer("giant", LARGE) | {"search_space": space}}
        | {f"c{number}": customer(f"c{number}", 60 + number) for number in range(4)},
        "target": "y",
        "task": "regression",
        "models": ["ridge"],
        "metric": f"{folder}/mine.py:loss",
        "mode": "min",
        "split": {"folds": 2},
        "algorithm": "random",
        "scheduler": "fifo",
        "ensemble": "none",
        "trials": 3,
        "slots": 3,
        "mlflow": False,
    }


def show(result: Any, left: dict[str, list[str]]) -> None:
    """Print what came of it."""
    board = result.leaderboard().set_index("customer")
    customers = {name: (row["status"], row["reason"], row["trials"]) for name, row in board.iterrows()}
    giant = sorted(
        (each.trial, each.state, str(each.reason or "")) for each in result.trial_records if each.customer == "giant"
    )
    print(json.dumps({"customers": customers, "giant": giant, "left_over": left}, default=int))


if __name__ == "__main__":
    main()
