"""The page on algorithms, written from the registry: `python -m search_spaces.table > docs/algorithms.md`."""

from __future__ import annotations

from search_spaces.algorithms import registry

PAGE = """# Search algorithms

Written by `python -m search_spaces.table > docs/algorithms.md` from the files in `search_spaces/algorithms/`; a test
compares. An algorithm is named in one word, or with options: `algorithm: {{name: optuna, profile: v4}}`. All of them
search the same space, take points to try first, survive failed trials and draw only from their study's seed; the
tests in `tests/test_spaces_contract.py` hold every one to that.

{table}

**Learns from**: *evaluated points* are results from before the study (warm start); *trials* are the study's own,
the points it was given to try first included.

## Warm start

```yaml
warm_start:
  - config: {{model: xgboost, max_depth: 3}}                 # tried right after the default configuration
  - {{config: {{model: ridge, alpha: 10}}, customer: acme}}    # for one customer only
  - {{config: {{model: ridge, alpha: 100}}, score: 0.71}}      # known already: learnt from, not tried first
```

What a configuration leaves out has its default. A score is one of the definition's metric; the column “learns from”
says which algorithms make use of it. Last week's best begin this week's search:

```python
TuneRunner(..., warm_start=RunResult("runs/week-46").warm_start(best=2)).run("runs/week-47")
```

## What they cost and what they find

`python -m benchmarks.search_cost` gives core-milliseconds per suggestion and its result over 40 trials, on a quadratic
of two parameters and on the preset `tabular-regression` (26 parameters, 7 branches); the median over seeds of the best
loss on the quadratic; and in how many of 20 seeds it is better than random search's, with the p-value of Wilcoxon's
one-sided test. Seen on two cores that other work shared, one thread each for the model-based ones:

| algorithm | ms, quadratic | ms, tabular | best loss | better than random | p |
|---|---|---|---|---|---|
| `random` | 0.005 | 0.019 | 0.55 | | |
| `sobol` | 0.005 | 0.020 | 0.33 | 16 of 20 | 0.009 |
| `zoopt` | 0.46 | 0.53 | 0.077 | 19 of 20 | 0.0004 |
| `cfo` | 0.44 | 0.63 | 0.12 | 18 of 20 | 0.004 |
| `optuna` | 0.54 | 0.88 | 0.061 | 19 of 20 | 3e-6 |
| `optuna`, `profile: v4` | 0.80 | 1.2 | 0.19 | 17 of 20 | 7e-5 |
| `optuna`, `sampler: cmaes` | 0.79 | 1.7 | 0.15 | 18 of 20 | 4e-5 |
| `optuna`, `sampler: gp` | 126 | about 800 (one study) | 0.00004 | 20 of 20 | 1e-6 |
| `hyperopt` | 0.56 | 1.1 | 0.31 | 13 of 20 | 0.009 |
| `blendsearch` | 0.61 | 2.0 | 0.071 | 17 of 20 | 4e-5 |
| `nevergrad` | 1.1 | 9.6 | 0.033 | 20 of 20 | 1e-6 |
| `bohb` | 9.2 | 7.5 | 1.5 | 5 of 20 | 0.98 |
| `bohb`, `min_bandwidth: 0.1` | | | 0.065 | 17 of 20 | 0.004 |

Slow ones were seen for less than that, on a machine too busy for more: `bayesopt` 111 ms on the quadratic (better than
random search on 5 of 5 seeds, median 0.0002) and about 2,000 ms on the preset; `ax` about 850 ms on the quadratic (27
suggestions of one study, best loss 0.004 there); `hebo` about 2,000 ms on the quadratic once its first four random
suggestions are over (9 suggestions of one study). The last two were not measured on the preset. Versions: Ray 2.60.0,
Optuna 5.0.0, hyperopt 0.3.0, hpbandster 0.7.4, torch 2.13.0 (CPU), botorch 0.17.2, cmaes 0.13.1, ax-platform 1.2.4,
bayesian-optimization 1.4.3, nevergrad 1.0.12, FLAML 2.7.0, HEBO 0.3.6, zoopt 0.4.2, numpy 2.4.6, scipy 1.17.1.

**BOHB is worse than random search there**, with the options of its paper. Its model starts after three trials; good
ones that are near each other by chance give kernels so narrow that two thirds of all further trials repeat them (the
same place to one digit, in about half of the 40). HyperBand's many cheap trials at small budgets are what it counts
on to fill the model first. A `min_bandwidth` of 0.1 cures that on this quadratic (on which it was found; on
Rosenbrock's function neither setting beats random search: 7 and 10 of 20). On a sphere of five parameters, where the
model starts later, the published 0.001 beats random search on 16 of 20 seeds (p = 0.0003).

## What was seen with which version

The libraries of the last column are optional. Each was installed in an environment of its own beside the versions in
`constraints.txt` (numpy 2.4, Ray 2.60, Optuna 5, scikit-learn 1.9) and held to the contract tests; asking for one that
is missing, or that has a version known not to work, gives its sentence below.

{limits}

Ray Tune 2.60 has wrappers for Ax, bayesian-optimization, BOHB, HEBO, HyperOpt, Nevergrad, Optuna and ZOOpt; those for
Dragonfly, scikit-optimize and SigOpt are gone, and asking for one of them says so.

## What an algorithm cannot be told

`spec.losses(space)` lists it for a space, and the plan prints it: a step on a logarithmic scale that a library
models as a continuum, whole numbers that it takes for real ones, branches that it sees all at once. In every case the
configurations that come back are inside the space; what suffers is only how well the model fits.
"""


def markdown() -> str:
    """The whole page."""
    rows = ["| algorithm | what it does | options | learns from | source | needs |", "|---|---|---|---|---|---|"]
    limits = []
    for name, kind in registry().items():
        options = [f"`{option}`" for option in kind.model_fields if option != "name"]
        learns = kind.learns
        needs = ", ".join(f"`{pip}`" for pip in kind.requires.values()) or "-"
        cells = (f"`{name}`", kind.title, ", ".join(options) or "-", learns, kind.paper, needs)
        rows.append(f"| {' | '.join(cells)} |")
        if kind.limits:
            limits.append(f"- `{name}`: {kind.limits}.")
    return PAGE.format(table="\n".join(rows), limits="\n".join(limits))


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
