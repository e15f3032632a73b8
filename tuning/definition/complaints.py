"""What is wrong with given values, in this program's words: the key, the rule, the value and the way out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from search_spaces.errors import rule
from tuning.basics.documents import Json
from tuning.basics.wording import did_you_mean, shorten
from tuning.errors import DefinitionError
from tuning.models.worker_group import GROUP_FIELDS
from tuning.storage.names import mask_in

ELSEWHERE = (
    " It stands in an entry of `models`, such as {estimator: xgboost, actors: 4}, and of single customers in their "
    "search_space, as a constant."
)
#: What other tools call our keys.
OF_OTHERS = {
    "trials": ("n_trials", "max_trials", "num_trials", "num_samples", "n_samples", "max_evals", "n_iter", "n_calls"),
    "time_budget": (
        "time_limit",
        "timeout",
        "time_budget_s",
        "max_time",
        "max_runtime_secs",
        "time_left_for_this_task",
        "run_seconds",
    ),
    "target": ("label", "labels", "y", "target_column", "label_column", "outcome"),
    "features": ("x", "X", "columns", "predictors"),
    "data": ("train", "train_data", "train_set", "df", "frame", "dataset", "path"),
    "metric": ("eval_metric", "scoring", "metric_name", "scorer", "loss"),
    "mode": ("direction", "minimize", "maximize"),
    "by": ("group_by", "groupby", "customer", "key", "id"),
    "split": ("cv", "n_splits", "n_folds", "num_folds", "folds", "test_size", "validation", "groups", "group"),
    "weight": ("sample_weight", "sample_weights", "weights", "weight_column"),
    "drop": ("ignore", "exclude", "ignored_columns", "drop_columns"),
    "stop": ("early_stopping", "early_stopping_rounds", "patience"),
    "resources": ("gpus", "num_gpus", "gpu", "memory"),
    "folds": ("cv", "n_splits", "n_folds", "k"),
    "test": ("test_size", "holdout", "hold_out"),
    "slots": ("n_jobs", "num_cpus", "cpus", "workers", "max_concurrent_trials", "nthread"),
    "algorithm": ("search_alg", "sampler", "searcher", "algo"),
    "scheduler": ("pruner",),
    "search_space": ("space", "param_space", "param_distributions", "param_grid", "params", "hyperparameters"),
    "models": ("estimator", "estimators", "estimator_list", "model", "include"),
    "seed": ("random_state", "random_seed"),
    "storage": ("output", "output_dir", "save_path"),
}


class KeyedError(ValueError):
    """What a validator of several keys finds wrong with one of them."""

    def __init__(self, key: str, rule: str) -> None:
        super().__init__(f"{key}: {rule}")
        self.key = key


def refused(error: ValidationError, kind: type[BaseModel]) -> DefinitionError:
    """Return what pydantic found wrong as an error with a line for each thing, about the key of the first one.

    kind: the class of the values.
    """
    first, made = error.errors()[0], DefinitionError("\n".join(complaints(error, kind)))
    inner = first.get("ctx", {}).get("error")
    made.key = ".".join(map(str, first["loc"])) or getattr(inner, "key", "")
    return made


def complaints(error: ValidationError, kind: type[BaseModel]) -> list[str]:
    """Return a sentence for each thing that pydantic found wrong.

    kind: the class of the values.
    """
    said: list[str] = []
    allowed: set[str] = set()  # the lists of keys that an earlier sentence has
    for found in error.errors():
        sentence, keys = _sentence(found, kind)
        said.append(f"{sentence} Allowed: {keys}" if keys and keys not in allowed else sentence)
        allowed.add(keys)
    return said


def _sentence(found: Json, kind: type[BaseModel]) -> tuple[str, str]:
    """Return what is wrong, and of an unknown key that is not one of another tool the keys that there are."""
    path = ".".join(str(part) for part in found["loc"])
    if found["type"] == "extra_forbidden":
        known = _kind_at(found["loc"][:-1], kind).model_fields
        ours = next((key for key, words in OF_OTHERS.items() if found["loc"][-1] in words and key in known), None)
        if ours:
            return f"{path}: unknown key. Here it is `{ours}`: {_first_sentence(known[ours])}", ""
        hint = ELSEWHERE if found["loc"][-1] in GROUP_FIELDS else did_you_mean(found["loc"][-1], known)
        return f"{path}: unknown key.{hint}", f"{', '.join(sorted(known))}."
    given = found.get("input")
    if found["type"] == "string_type" and callable(given):
        name = getattr(given, "__name__", "function")
        return (
            f"{path}: a function is given by where it is, as workers and a later resume load it from there. Write it "
            f"into a file (in a notebook by a cell that begins with %%writefile {path}.py) and give "
            f"'{path}.py:{name}'."
        ), ""
    if found["type"] == "string_type" and hasattr(given, "shape"):
        return f"{path}: values of rows are a column of them: add it to X or the data, and give its name.", ""
    silent = found["type"] in ("value_error", "missing") or isinstance(given, Mapping)
    said = rule(found) if silent else f"{rule(found)} (got {shorten(repr(given), 200)})"
    if found["type"] == "model_type":
        said += f". Its keys: {', '.join(sorted(_kind_at(found['loc'], kind).model_fields))}"
    return mask_in(f"{path}: {said}" if path else said), ""


def _first_sentence(field: FieldInfo) -> str:
    return (field.description or "").partition(". ")[0].removesuffix(".") + "."


def _kind_at(path: tuple[int | str, ...], kind: type[BaseModel]) -> type[BaseModel]:
    """Return the class of the keys at a path. Numbers are places in a list, other names those of a mapping."""
    for part in (part for part in path if isinstance(part, str) and part in kind.model_fields):
        kind = next(_kinds_in(kind.model_fields[part].annotation))
    return kind


def _kinds_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the pydantic classes that an annotation names, those inside unions and tuples too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _kinds_in(inner)
