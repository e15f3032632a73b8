"""The demo's customers: related but different, with the trouble that real ones bring.

Each file holds a month of one customer's accounts: did the account churn? The customers share the way churn comes
about but differ in how much each cause matters, in size and in noise. Missing values and text columns are
everywhere; one file cannot be read, one customer never lost anybody (a single class), one has three rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

PLANS = np.array(["basic", "plus", "business"])
REGIONS = np.array(["north", "south", "east", "west", "islands"])


def make_customer(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Return one customer's accounts with the column `churned` (yes/no)."""
    plan = rng.choice(PLANS, rows, p=[0.5, 0.3, 0.2])
    tenure = rng.gamma(2.0, 10.0, rows).round(1)
    price = rng.normal(40, 12, rows).clip(5).round(2)
    tickets = rng.poisson(1.2, rows)
    usage = rng.lognormal(2.0, 0.6, rows).round(2)
    weights = rng.normal([-0.06, 0.03, 0.6, -0.05], [0.02, 0.01, 0.2, 0.02])
    effect = weights[0] * tenure + weights[1] * price + weights[2] * tickets + weights[3] * usage
    # What a linear model misses, a lot for some customers and hardly at all for others.
    effect += rng.uniform(0, 3) * (np.where((plan == "basic") == (tickets > 1), 0.7, -0.7) - np.abs(np.log(usage) - 2))
    effect += rng.normal(0, rng.uniform(0.3, 1.2), rows)
    churned = effect > np.quantile(effect, rng.uniform(0.6, 0.8))
    frame = pd.DataFrame(
        {
            "plan": plan,
            "region": rng.choice(REGIONS, rows),
            "tenure_months": tenure,
            "monthly_price": price,
            "tickets": tickets,
            "usage_hours": usage,
            "churned": np.where(churned, "yes", "no"),
        }
    )
    for column in ("tenure_months", "usage_hours", "region"):
        frame.loc[rng.random(rows) < 0.08, column] = None
    return frame


def write_customers(folder: Path, customers: int = 24, seed: int = 7) -> None:
    """Write the customers as CSV files; the last three are the troubled ones. customers: 4 or more."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for number in range(1, customers - 2):
        rows = int(rng.integers(200, 900))
        make_customer(rng, rows).to_csv(folder / f"customer-{number:02d}.csv", index=False)
    (folder / "customer-broken.csv").write_bytes(b"plan,region\n\xff\xfe\x00broken\x9d\n" * 5)
    make_customer(rng, 150).assign(churned="no").to_csv(folder / "customer-loyal.csv", index=False)
    make_customer(rng, 3).to_csv(folder / "customer-tiny.csv", index=False)
