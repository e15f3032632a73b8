"""The page on algorithms, written from the registry: `python -m search_spaces.table > docs/algorithms.md`."""

from __future__ import annotations

from search_spaces.algorithms import registry

PAGE = """# Search algorithms

Written by `python -m search_spaces.table > docs/algorithms.md` from the files in `search_spaces/algorithms/`; a test
compares. An algorithm is named in one word, or with options: `algorithm: {{name: optuna, profile: v4}}`. All of them
search the same space, take points to try first, survive failed trials and draw only from their study's seed; the
tests in `tests/contracts/test_spaces.py` hold every one to that.

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

`python -m benchmarks.search_cost` gives core-milliseconds per suggestion and its result over 40 trials, on a
quadratic of two parameters and on the preset `tabular-regression` (26 parameters, 7 branches); the median over seeds
of the best loss on the quadratic; and in how many of the seeds it is better than random search's, with the p-value of
Wilcoxon's one-sided test. CPU time of one thread, on two cores that other work shared; 20 studies on the quadratic
and 3 on the preset, where the last column says nothing else (each algorithm has its core-seconds, `--seconds`):

| algorithm | ms, quadratic | ms, tabular | best loss | better than random | p | studies |
|---|---|---|---|---|---|---|
| `random` | 0.005 | 0.019 | 0.55 | | | |
| `sobol` | 0.005 | 0.020 | 0.33 | 16 of 20 | 0.009 | |
| `zoopt` | 0.46 | 0.53 | 0.077 | 19 of 20 | 0.0004 | |
| `cfo` | 0.44 | 0.63 | 0.12 | 18 of 20 | 0.004 | |
| `optuna` | 0.54 | 0.88 | 0.061 | 19 of 20 | 3e-6 | |
| `optuna`, `profile: v4` | 0.80 | 1.2 | 0.19 | 17 of 20 | 7e-5 | |
| `optuna`, `sampler: cmaes` | 0.67 | 1.2 | 0.15 | 18 of 20 | 4e-5 | |
| `hyperopt` | 0.56 | 1.1 | 0.31 | 13 of 20 | 0.009 | |
| `blendsearch` | 0.61 | 2.0 | 0.071 | 17 of 20 | 4e-5 | |
| `nevergrad` | 1.1 | 9.6 | 0.033 | 20 of 20 | 1e-6 | |
| `bohb` | 9.2 | 7.5 | 1.5 | 5 of 20 | 0.98 | |
| `bohb`, `min_bandwidth: 0.1` | 11 | 5.2 | 0.065 | 17 of 20 | 0.004 | |
| `optuna`, `sampler: gp` | 86 | 660 | 0.00004 | 20 of 20 | 1e-6 | |
| `bayesopt` | 96 | 940 | 0.0002 | 18 of 18 | 4e-6 | 18 and 2 |
| `ax` | 1,090 | 82 | 0.0006 | 1 of 1 | | 1 (39 trials) and 3 |
| `hebo` | 2,130 | 1,360 | 0.00005 | 2 of 2 | | 2 and 3 |

With one or two studies `ax` and `hebo` show what they cost and that they come close, not how often they win. On the
preset they are cheap for another reason: `ax` draws all of those 40 trials, and `hebo` the first 27, from a sequence
without a model, before a fit of 3 to 4 s for each. HEBO's own fit fails now and then (seen in studies of 40 trials,
never in the first 14 on the quadratic or 30 on the preset); it proposes from chance then. The fast ones were measured
twice: the losses were the same in every digit printed, the times up to 2.3 times as long (`nevergrad`) while 20
processes shared the two cores. Versions: Ray 2.60.0, Optuna 5.0.0, hyperopt 0.3.0, hpbandster 0.7.4, torch 2.13.0
(CPU), botorch 0.17.2, cmaes 0.13.1, ax-platform 1.2.4, bayesian-optimization 1.4.0, nevergrad 1.0.12, FLAML 2.7.0,
HEBO 0.3.6, zoopt 0.4.2, numpy 2.4.6, scipy 1.17.1.

TPE against random search is also a test, `test_tpe_beats_random_search`: p below 0.01 over 20 fixed seeds. Fixed
seeds cannot flake; of 50 other sets of 20 seeds none failed (largest p 0.0014), so that a fair choice of seeds would
fail with less than 6 % (95 % confidence).

**BOHB is worse than random search there**, with the options of its paper. Its model starts after three trials; good
ones that are near each other by chance give kernels so narrow that further trials repeat them: in the median study 13
of the 40 trials are, to one decimal place, one that was tried before, 9 or 10 of them the same one. HyperBand's many
cheap trials at small budgets are what it counts on to fill the model first. A `min_bandwidth` of 0.1 cures that on
this quadratic (on which it was found: 17 of 20, no repetition) and on Rosenbrock's function over -5 to 5 (15 of 20, p
= 0.007; the published 0.001: 9); over -2 to 2 and -1 to 3 neither beats random search (10 and 8 of 20). On a sphere
of five parameters, where the model starts later, the published 0.001 beats random search on 13 of 20 seeds (p =
0.02).

## What was seen with which version

The libraries of the last column are optional; `pip install 'tuning-service[nevergrad]'` and so on, with extras `ax`,
`bayesopt`, `bohb`, `cmaes`, `flaml`, `gp`, `nevergrad` and `zoopt`, bring them. All that install in seconds are in
`dev`, so that `make test` holds them to the contract beside the versions in `constraints.txt` (numpy 2.4, Ray 2.60,
Optuna 5, scikit-learn 1.9): `bayesopt`, `blendsearch`, `bohb`, `cfo`, `nevergrad`, `zoopt` and Optuna's CMA-ES. `ax`,
`hebo` and Optuna's GP need PyTorch, which is large, and seconds per suggestion; they are held to it by hand, in an
environment of their own. With the versions above all three pass, as does bayesian-optimization 1.4.3:

```console
$ python3 -m venv heavy && heavy/bin/pip install -c constraints.txt -e '.[dev,ax,gp]'
$ heavy/bin/pip install -c constraints.txt pymoo==0.6.1.5 GPy gpytorch catboost disjoint-set
$ heavy/bin/pip install --no-deps HEBO==0.3.6
$ heavy/bin/python -m pytest tests/contracts/test_spaces.py -k "ax or hebo or optuna-gp" --timeout 900
```

In real runs (three customers, `asha`, a conditional space of two families, points and scores to begin with) every
algorithm gave the same trials and scores on one and on two workers and with the customers in another order (HEBO after
an interruption and a resume).

Asking for an algorithm whose library is missing, or has a version known not to work, gives its sentence:

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
