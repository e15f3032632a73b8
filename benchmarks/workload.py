"""The work that all contenders share: generated customers, a tier's model and space, one list of configurations.

Tiers are named by the pure fit time of one trial (3 folds) on one core: S about 5 ms, M about 50 ms, L about 300 ms.
T is for tiny: customers so small and so many that a trial is no unit any more. They are rows of one Parquet table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from search_spaces import SearchSpace
    from tuning.definition.definition import Definition

TARGET, KEY = "y", "customer"
TEST, FOLDS = 0.2, 3
# Libraries read these when they are loaded; every contender gets one thread per fit.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
FIXED, OWN = "fixed", "own"  # one list of full-length configurations for all; each with its own search and scheduler
BINS, OUR_BINS = 256, 64  # XGBoost's default of max_bin; ours for so few rows


@dataclass(frozen=True)
class Tier:
    """rows, columns: of one customer. rounds, depth: of boosting tiers, None for the linear ones.

    keyed: all customers are in one Parquet table, in the order of its integer key, instead of a CSV file each.
    """

    name: str
    rows: int
    columns: int
    task: str
    metric: str
    rounds: int | None = None
    depth: int | None = None
    keyed: bool = False

    def space(self, bins: int | None = None) -> SearchSpace:
        """The search space: a few real parameters, none of which changes how long a fit takes by much.

        bins: of boosting tiers, XGBoost's `max_bin`; None: each tool's own default.
        """
        from search_spaces import SearchSpace
        from search_spaces.parameters import Constant, Float

        if self.rounds is None:
            return SearchSpace([Constant("model", "ridge"), Float("alpha", 1e-4, 1e3, log=True, default=1.0)])
        given = [] if bins is None else [Constant("max_bin", bins)]
        return SearchSpace(
            [
                Constant("model", "xgboost"),
                *given,
                Constant("n_estimators", self.rounds),
                Constant("max_depth", self.depth),
                Float("learning_rate", 0.02, 0.5, log=True, default=0.3),
                Float("reg_lambda", 1e-2, 1e2, log=True, default=1.0),
            ]
        )


TIERS = {
    "S": Tier("S", 500, 8, "regression", "neg_root_mean_squared_error"),
    "M": Tier("M", 500, 8, "binary", "roc_auc", rounds=100, depth=3),
    "L": Tier("L", 1000, 10, "binary", "roc_auc", rounds=250, depth=5),
    "T": Tier("T", 30, 4, "regression", "neg_root_mean_squared_error", keyed=True),
}
TRIALS = {"T": 3}  # per customer, 20 in the other tiers
ROW_GROUP = 60_000  # rows of the table


@dataclass(frozen=True)
class Scenario:
    """One contender's task, as it is handed to the process that runs it.

    folder: holds `customers/*.csv` or `customers.parquet`, and `configurations.json`. customers: ids, in order.
    search: FIXED or OWN. bins: XGBoost's `max_bin` in all configurations; None: each tool's own default.
    """

    tier: str
    folder: str
    customers: tuple[str, ...]
    trials: int = 20
    search: str = FIXED
    cores: int = 2
    bins: int | None = BINS
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> Tier:
        return TIERS[self.tier]

    @property
    def space(self) -> SearchSpace:
        return self.shape.space(self.bins)

    def path(self, customer: str) -> str:
        return f"{self.folder}/customers/{customer}.csv"

    @property
    def table(self) -> str:
        """The file of a keyed tier's customers."""
        return f"{self.folder}/customers.parquet"

    def configurations(self) -> dict[str, list[dict[str, Any]]]:
        """Each customer's list: what random search with the customer's seed draws, the default first."""
        found = json.loads(Path(self.folder, "configurations.json").read_text())
        return {
            customer: [self._binned(point) for point in found[customer][: self.trials]] for customer in self.customers
        }

    def _binned(self, point: dict[str, Any]) -> dict[str, Any]:
        """With this scenario's number of bins, where there are any."""
        others = {name: value for name, value in point.items() if name != "max_bin"}
        return others if self.bins is None or len(others) == len(point) else {**others, "max_bin": self.bins}

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Scenario:
        values = json.loads(text)
        return cls(**{**values, "customers": tuple(values["customers"])})


def definition(scenario: Scenario, **options: Any) -> Definition:
    """Our definition of a scenario."""
    from tuning.definition.definition import define

    tier = scenario.shape
    search = (
        # What all contenders do: no configurations of our own first, and no ensemble after.
        {"algorithm": "random", "scheduler": "fifo", "portfolio": "none", "ensemble": "none"}
        if scenario.search == FIXED
        else {"algorithm": "optuna", "scheduler": "asha"}
    )
    values = {
        "name": f"throughput-{tier.name}",
        **_data(scenario),
        "target": TARGET,
        "task": tier.task,
        "metric": tier.metric,
        "search_space": scenario.space,
        "trials": scenario.trials,
        "slots": scenario.cores,
        "placement": "packed",  # on Ray from the first trial on
        "split": {"test": TEST, "folds": FOLDS},
        **search,
        **options,
    }
    return define(values)


def _data(scenario: Scenario) -> dict[str, Any]:
    """The keys of a definition that say where the customers are; a table is one as a whole."""
    if not scenario.shape.keyed:
        return {"data": {customer: scenario.path(customer) for customer in scenario.customers}}
    return {"data": scenario.table, "by": [KEY]}


def make_workload(folder: Path, tier: Tier, customers: int, trials: int, seed: int = 11) -> tuple[str, ...]:
    """Write the customers' files and the list of configurations; gives the customers' ids."""
    import numpy as np

    frames = [_customer(tier, np.random.default_rng([seed, number])) for number in range(customers)]
    folder.mkdir(parents=True)
    if tier.keyed:
        ids = tuple(map(str, range(customers)))
        _write_table(folder / "customers.parquet", frames)
    else:
        ids = tuple(f"c{number:05d}" for number in range(customers))
        (folder / "customers").mkdir()
        for customer, frame in zip(ids, frames, strict=True):
            frame.to_csv(folder / "customers" / f"{customer}.csv", index=False, float_format="%.6g")
    scenario = Scenario(tier.name, str(folder), ids, trials)
    (folder / "configurations.json").write_text(json.dumps(draw_configurations(scenario)))
    return ids


def _write_table(path: Path, frames: list[pd.DataFrame]) -> None:
    import pandas as pd

    table = pd.concat(frames, keys=range(len(frames)), names=[KEY]).reset_index(level=0)
    table.to_parquet(path, index=False, row_group_size=ROW_GROUP)


def _customer(tier: Tier, rng: np.random.Generator) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    X = rng.normal(rng.normal(0, 3, tier.columns), rng.uniform(0.5, 20, tier.columns), (tier.rows, tier.columns))
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = standard @ rng.normal(size=tier.columns) + standard[:, 0] * standard[:, 1]
    noisy = signal + rng.normal(0, rng.uniform(0.5, 2.0), tier.rows)
    frame = pd.DataFrame(X, columns=[f"x{number}" for number in range(tier.columns)])
    frame[TARGET] = noisy if tier.task == "regression" else (noisy > np.median(noisy)).astype(int)
    return frame


def draw_configurations(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    """What our own random search will suggest, study by study, so that everybody can be given the same."""
    from tuning.planning.plan import make_plan

    plan = make_plan(definition(scenario))
    drawn = {}
    for study in plan.studies:
        searcher = study.algorithm.build(
            plan.spec.space,
            metric="score",
            mode="max",
            seed=study.seed,
            n_trials=scenario.trials,
            points=[plan.spec.space.default()],
        )
        drawn[study.customer.id] = [searcher.suggest(str(number)) for number in range(scenario.trials)]
    return drawn


def split_seed(customer: str) -> int:
    """What a customer's rows are divided with, by us and so by everybody."""
    from tuning.basics.seeds import derive

    return derive(0, "data", customer) % 2**32


def arguments(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration as the estimator's arguments."""
    return {name: value for name, value in config.items() if name != "model"}


def best(scores: Sequence[float]) -> int:
    """Position of the best trial; the earliest of equal ones."""
    return max(range(len(scores)), key=lambda position: (scores[position], -position))
