"""`python -m benchmarks.portfolio`: make the shipped portfolios anew, and see what they are worth.

    python -m benchmarks.portfolio --task regression            what a portfolio is worth on tables it has not seen
    python -m benchmarks.portfolio --task regression --write    the same, and its file anew

A table takes ten seconds. Regret: 0 is the best of all candidates on a table, 1 the middle one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np

from benchmarks.portfolio.tables import tables
from benchmarks.portfolio.trials import candidates, config_of, evaluate
from tuning.planning import portfolios
from tuning.planning.portfolios.learning import Cell, learn, regrets
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION
from tuning.records.schema import canonical

SIZE = 20  # more than a study tries: who lacks optional families has the others
PARTS = 4
AFTER = (1, 5, 6, 8, 10, 20)


@click.command()
@click.option("--task", type=click.Choice([REGRESSION, BINARY, MULTICLASS]), required=True)
@click.option("--tables", "most", default=45, show_default=True, help="At most so many tables.")
@click.option("--write", is_flag=True, help="Write the shipped file of the task anew.")
def main(task: str, most: int, write: bool) -> None:
    """Learn the portfolio of a task."""
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    configs = candidates(task)
    found: list[dict[str, Cell]] = []
    for name, rows in tables(task, most):
        found.append(evaluate(name, rows, task, configs))
        click.echo(f"{name}: {len(rows)} rows, {len(found[-1])} of {len(configs)} candidates", err=True)
    click.echo(worth(found, [canonical(config) for config in configs]))
    if write:
        path = write_portfolio(task, found)
        click.echo(f"{path.name} holds {len(learn(found, SIZE))} configurations")


def worth(found: Sequence[Mapping[str, Cell]], names: Sequence[str]) -> str:
    """The mean regret after n trials, of a portfolio learned on other tables and of random order."""
    rng = np.random.default_rng(0)
    curves: dict[str, list[list[float]]] = {"portfolio": [], "random": []}
    for place, table in enumerate(found):
        others = [other for number, other in enumerate(found) if number % PARTS != place % PARTS]
        learned = learn(others, SIZE)
        rest = [name for name in names if name not in learned]
        orders = {"portfolio": [*learned, *rng.permutation(rest)], "random": list(rng.permutation(names))}
        for way, order in orders.items():
            curves[way].append([min(regrets(table, order[:count])) for count in AFTER])
    lines = ["| first trials | " + " | ".join(str(count) for count in AFTER) + " |", "|---" * (len(AFTER) + 1) + "|"]
    for way, rows in curves.items():
        lines.append(f"| {way} | " + " | ".join(f"{value:.3f}" for value in np.mean(rows, axis=0)) + " |")
    return "\n".join(lines)


def write_portfolio(task: str, found: Sequence[Mapping[str, Cell]]) -> Path:
    """The shipped file of a task, learned from all these tables."""
    import yaml

    path = Path(portfolios.__file__).with_name(f"{task}.yaml")
    lines = [
        f"title: What every study of a {task} task begins with.",
        f"source: learned on {len(found)} of R's data sets; python -m benchmarks.portfolio --task {task} --write",
        "configurations:",
    ]
    for name in learn(found, SIZE):
        config = {
            key: float(f"{value:.3g}") if isinstance(value, float) else value for key, value in config_of(name).items()
        }
        lines.append("  - " + yaml.safe_dump(config, default_flow_style=True, sort_keys=False, width=10**6).strip())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
