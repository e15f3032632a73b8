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
