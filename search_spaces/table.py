"""The page on algorithms, written from the registry: `python -m search_spaces.table > docs/algorithms.md`."""

from __future__ import annotations

from search_spaces.algorithms import registry

PAGE = """# Search algorithms

Name an algorithm in one word, or with options: `algorithm: {{name: optuna, profile: v4}}`. All of them search the same
space, accept points to try first, survive failed trials and use their study's seed only.

{table}

**Learns from**: *evaluated points* are results from before the study (warm start); *trials* are the study's own, the
points to try first included.

Where all parameters have finitely many values and there are 10,000 configurations or fewer, each is tried once,
whatever the algorithm, and a study ends with the last (except under `pbt` and `pb2`, which change configurations).

## Warm start

```yaml
warm_start:
  - config: {{model: xgboost, max_depth: 3}}                 # tried right after the baseline
  - {{config: {{model: logistic, C: 0.1}}, customer: acme}}    # for one customer only
  - {{config: {{model: logistic, C: 10}}, score: 0.71}}        # known: learnt from, not tried first
```

A parameter that a configuration leaves out has its default. A score is one of the definition's metric. To start this
week's search with last week's best:

```python
last = RunResult("runs/week-46")
TuneRunner.from_yaml("churn.yaml", warm_start=last.warm_start(best=2)).run("runs/week-47")
```

## Which one to take

On a quadratic of two parameters, `optuna` (the default) beats random search in 19 of 20 studies of 40 trials, at 0.5 ms
a suggestion. `random` and `sobol` cost next to nothing. Gaussian processes (`optuna` with `sampler: gp`, `bayesopt`,
`ax`, `hebo`) find the best configurations there, at 0.1 to 2 s a suggestion. `bohb` needs a scheduler with small
budgets, or `min_bandwidth: 0.1`. [Figures](decisions/search-algorithms-and-schedulers.md).

An algorithm with a model begins at random: `optuna` and `bayesopt` with 10 trials, `hyperopt` with 20, `bohb` with two
more than twice the number of parameters, `ax` with twice that number but at least 5, `hebo` with one more than it. A
plan, and the report of a comparison, name the algorithms whose start is as long as a study. `optuna` with `sampler: gp`
learns from full trials only, so take `scheduler: fifo` with it; `sampler: cmaes` also learns from those that `asha`
stops ([measured](decisions/search-algorithms-and-schedulers.md#what-algorithms-hear)). `cfo` and `blendsearch` begin
at the better of the default configuration and its cheap corner, where parameters say which end of their range is
`cheap`.

## Optional libraries

The extras `ax`, `bayesopt`, `bohb`, `cmaes`, `flaml`, `gp`, `nevergrad` and `zoopt` install the optional libraries of
the last column: `pip install 'tuning-service[nevergrad]'`. When one is missing, or has a version known not to work, the
error says which works and how to install it.

`ax`, `hebo` and Optuna's GP need PyTorch, which is large. `hebo` has no extra:

```console
$ pip install -c constraints.txt torch GPy gpytorch catboost disjoint-set pymoo==0.6.1.5
$ pip install --no-deps HEBO==0.3.6
```

Every algorithm gives the same trials and scores on one and on two workers, and with the customers in another order.

## What an algorithm cannot be told

Some libraries take a step on a logarithmic scale for continuous, whole numbers for real ones, or all branches for one
space. All suggestions are still inside the space.
"""


def markdown() -> str:
    """The whole page."""
    rows = ["| algorithm | what it does | options | learns from | source | needs |", "|---|---|---|---|---|---|"]
    for name, kind in registry().items():
        options = [f"`{option}`" for option in kind.model_fields if option != "name"]
        learns = kind.learns
        needs = ", ".join(f"`{pip}`" for pip in kind.requires.values()) or "-"
        cells = (f"`{name}`", kind.title, ", ".join(options) or "-", learns, kind.paper, needs)
        rows.append(f"| {' | '.join(cells)} |")
    return PAGE.format(table="\n".join(rows))


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
