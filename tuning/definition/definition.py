"""What the user writes: data, target, task, metric, search space, algorithm, scheduler, budget, storage, tracking.

Keyword arguments of `TuneRunner` and the keys of a YAML file are the same fields, checked by the same model.
Unknown keys are errors that name the nearest valid one.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from tuning.definition.methods import CompareOptions
from tuning.definition.options import (
    CsvOptions,
    CustomerOptions,
    Limits,
    MLflowOptions,
    Options,
    Resources,
    SplitOptions,
    WarmStart,
    parse_space,
)
from tuning.errors import DefinitionError
from tuning.models.entries import parse_models
from tuning.storage.names import mask_in
from tuning.wording import did_you_mean


class Definition(Options):
    """One search over all customers.

    name: of the definition, the MLflow experiment and the run directories.
    data: a glob, file or folder of CSV or Parquet files, a mapping of customer to file (or `{path, search_space,
        trials, resources}`), or a DataFrame; every file is one customer unless `by` names key columns.
    by: key column(s); each value (combination) is one customer. A folder, a file or a list of files is one table; of
        a glob each file is a table of its own, so that a customer is a file and a value.
    manifest: a file of customer to path, with options per customer; instead of `data`, or beside it for the options.
    customers: ids of those to search (default: all).
    encoding, csv: how CSV files are read.
    target: the column to predict. features: the columns to predict from (default: all others). drop: columns
        left out. weight: column of sample weights, for fitting and scoring. class_weight: "balanced" or a weight per
        class, for fitting.
    prepare: `file.py:function` or `package.module:function`, given a customer's frame, returns it
        changed (derived columns, filtered rows).
    task: regression, binary or multiclass; guessed from the target when "auto".
    models: built-in families by name and own estimators (see docs/models.md); default: those of the search space's
        preset. allow_pickle: save winners that the safe format does not cover with cloudpickle.
    metric: a scikit-learn scorer's name or `package.module:function`; default by task. split: see `SplitOptions`.
    winner: "best" by cross-validation, or "one_standard_error": the simplest of those no worse than one standard
        error below it (see `tuning.evaluation.winner`).
    search_space: a preset's name or a definition of parameters. algorithm, scheduler: a name or a mapping with
        options. stop: rules that end a trial or a study before its budget, such as `{target: 0.95}`
        (docs/schedulers.md). warm_start: configurations to try first, or whose score is known (docs/algorithms.md).
        trials: per study. seed: of everything random.
    objective: a function or generator to tune instead of models (see docs/objectives.md), or its import path;
        with `metric` the name of the figure it reports and `mode` its direction. steps: its full number of steps.
    min_rows: customers with fewer get a reason instead of a model.
    placement: "packed" works through studies in process, many per worker; "spread" makes every trial a Tune trial;
        "auto" spreads when there are fewer studies than slots and their trials are long, or of unknown length.
    compare: algorithms and seeds to compare, in place of `algorithm` and `scheduler` (docs/compare.md).
    storage: where run directories are made. slots: trials at once (default: the CPUs). resources: of each of them.
    """

    name: str = Field("search", pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$")
    data: Any = None
    by: tuple[str, ...] = ()
    manifest: str | None = None
    customers: tuple[str, ...] = ()
    target: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    prepare: str | None = None
    weight: str | None = None
    class_weight: Any = None
    encoding: str = "utf-8"
    csv: CsvOptions = CsvOptions()
    min_rows: int = Field(4, ge=4)
    task: Literal["auto", "regression", "binary", "multiclass"] = "auto"
    metric: str | None = None
    mode: Literal["max", "min"] = "max"
    split: SplitOptions = SplitOptions()
    winner: Literal["best", "one_standard_error"] = "best"
    models: tuple[Any, ...] = ()
    allow_pickle: bool = False
    search_space: Any = None
    algorithm: Any = Field("optuna", validate_default=True)
    scheduler: Any = Field("asha", validate_default=True)
    stop: Any = None
    warm_start: tuple[WarmStart, ...] = Field((), max_length=100_000)
    trials: int = Field(20, ge=1, le=1_000_000)
    seed: int = Field(0, ge=0, lt=2**32)
    objective: Any = None
    steps: int = Field(1, ge=1)
    placement: Literal["auto", "packed", "spread"] = "auto"
    storage: str = Field("runs", min_length=1)
    mlflow: MLflowOptions = MLflowOptions()
    limits: Limits = Limits()
    slots: int | None = Field(None, ge=1)
    resources: Resources = Resources()
    save_models: bool = True
    compare: CompareOptions | None = None

    @field_validator("by", "customers", "features", "drop", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("customers", mode="before")
    @classmethod
    def _ids_are_text(cls, value: Any) -> Any:
        """141 in YAML is the customer "141", as it is in a column of numbers."""
        ids = (value,) if isinstance(value, int | float) else value
        return [str(int(one) if one == int(one) else one) if type(one) in (int, float) else one for one in ids or ()]

    @field_validator("data", mode="before")
    @classmethod
    def _data(cls, value: Any) -> Any:
        if hasattr(value, "to_pandas") and not hasattr(value, "iloc"):  # a pyarrow or polars table
            return value.to_pandas()
        if isinstance(value, Mapping):
            return {str(name): _entry(item) for name, item in value.items()}
        value = str(value) if isinstance(value, Path) else value
        if value is None or hasattr(value, "columns"):
            return value
        if not value or not isinstance(value, str | list | tuple):
            raise ValueError(f"{value!r} is no glob, file, folder, list of them, mapping or DataFrame")
        return value

    @field_validator("by")
    @classmethod
    def _by(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        doubled = [name for position, name in enumerate(value) if name in value[:position]]
        if doubled:
            raise ValueError(f"the key column {doubled[0]!r} is named twice; once is enough")
        return value

    @field_validator("split", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return {"type": value} if isinstance(value, str) else value

    @field_validator("encoding")
    @classmethod
    def _encoding(cls, value: str) -> str:
        try:
            codecs.lookup(value)
            "".encode(value)  # some codecs are not for text, such as rot13
        except LookupError as error:
            raise ValueError(
                f"{value!r} is not an encoding that Python knows; utf-8, latin-1, cp1252 are some"
            ) from error
        return value

    @field_validator("class_weight")
    @classmethod
    def _class_weight(cls, value: Any) -> Any:
        if value is None or value == "balanced":
            return value
        if not isinstance(value, Mapping) or not value:
            raise ValueError(f"{value!r} is neither 'balanced' nor a mapping of class to weight")
        for label, weight in value.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
                raise ValueError(f"the weight of class {label!r} is {weight!r}; a number above 0 is expected")
        return dict(value)

    @field_validator("mlflow", mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        if isinstance(value, str) and value.lower() in ("on", "off", "yes", "no"):
            value = value.lower() in ("on", "yes")
        return {"enabled": value} if isinstance(value, bool) else value

    @field_validator("models", mode="before")
    @classmethod
    def _models(cls, value: Any) -> Any:
        return () if value is None or (isinstance(value, tuple) and not value) else parse_models(value)

    @model_validator(mode="before")
    @classmethod
    def _every_model_once(cls, values: Any) -> Any:
        """Models without anything to vary are a list, not a search: each is tried once."""
        if not isinstance(values, dict) or not values.get("models") or values.get("search_space") is not None:
            return values
        try:
            entries = parse_models(values["models"])
        except ValueError:
            return values  # told under its field
        if any(entry.built_in or entry.search_space is not None for entry in entries):
            return values
        return {"algorithm": "grid", "trials": len(entries), **values}

    @field_validator("algorithm")
    @classmethod
    def _algorithm(cls, value: Any) -> Any:
        from search_spaces import algorithms

        return algorithms.parse(value)

    @field_validator("scheduler")
    @classmethod
    def _scheduler(cls, value: Any) -> Any:
        import schedulers

        return schedulers.parse(value)

    @field_validator("stop")
    @classmethod
    def _stop(cls, value: Any) -> Any:
        from schedulers import stopping

        stopping.parse(value or {})
        return value

    @field_validator("search_space")
    @classmethod
    def _search_space(cls, value: Any) -> Any:
        return parse_space(value)

    @model_validator(mode="after")
    def _fits_together(self) -> Definition:
        if self.objective is not None and self.models:
            raise ValueError("models: an objective is tuned instead of models; leave one of them out")
        if self.objective is None:
            if self.target is None:
                raise ValueError("target: the column to predict is missing")
            for field, names in (("by", self.by), ("features", self.features or ()), ("weight", (self.weight,))):
                if self.target in names:
                    raise ValueError(f"target: {self.target!r} is the column to predict and stands under `{field}` too")
            if self.data is None and self.manifest is None:
                raise ValueError("data: a glob, file, mapping or DataFrame is missing")
        elif self.search_space is None:
            raise ValueError("search_space: an objective needs one, there is no preset for it")
        elif isinstance(self.search_space, str):
            raise ValueError(f"search_space: {self.search_space!r} is a preset for models; an objective needs its own")
        return self

    @property
    def own_metric(self) -> bool:
        """Whether the metric is a user's function, not a scorer's name."""
        return self.objective is None and self.metric is not None and ":" in self.metric

    @property
    def csv_options(self) -> dict[str, Any]:
        """Keyword arguments of `pandas.read_csv`."""
        return {"encoding": self.encoding, **self.csv.model_dump(exclude_defaults=True)}

    @property
    def not_features(self) -> tuple[str, ...]:
        """Columns that say something about rows and are not predicted from, beside the target."""
        named = (*self.drop, *self.by, self.weight, self.split.group)
        return tuple(name for name in named if name is not None)

    def needed_of(self, names: Sequence[str]) -> list[str] | None:
        """Those of a file's columns that a search can use; None when all may be needed."""
        if self.features is None or self.prepare is not None or self.objective is not None:
            return None
        wanted = {*self.features, self.target, self.weight, self.split.group, self.split.column, *self.by}
        return [name for name in names if name in wanted]

    def to_dict(self) -> dict[str, Any]:
        """The definition as plain values, as it would stand in YAML; defaults are left out."""
        plain = self.model_dump(
            mode="python",
            exclude_defaults=True,
            exclude={"algorithm", "scheduler", "search_space", "models", "data", "objective", "compare"},
        )
        # A DataFrame has no single answer to "does it equal the default?".
        plain.update({name: value for name in ("data", "objective") if (value := getattr(self, name)) is not None})
        plain["algorithm"] = self.algorithm.to_dict()
        plain["scheduler"] = self.scheduler.to_dict()
        if self.models:
            plain["models"] = [entry.to_dict() for entry in self.models]
        if self.compare is not None:
            plain["compare"] = self.compare.to_dict()
        if self.search_space is not None:
            plain["search_space"] = (
                self.search_space if isinstance(self.search_space, str) else self.search_space.to_dict()
            )
        return {key: _plain(value) for key, value in plain.items()}

    def fingerprint(self) -> str:
        """Sixteen hex digits; equal for definitions that search the same thing."""
        text = json.dumps(self.to_dict(), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _entry(value: Any) -> Any:
    """A value of a mapping of customers: a path, a frame or `CustomerOptions`."""
    if hasattr(value, "to_pandas") and not hasattr(value, "iloc"):
        return value.to_pandas()
    return CustomerOptions(**value) if isinstance(value, Mapping) else str(value) if isinstance(value, Path) else value


def _plain(value: Any) -> Any:
    if isinstance(value, CustomerOptions):
        entry = value.model_dump(exclude_defaults=True, exclude={"search_space"})
        space = value.search_space
        if space is not None:
            entry["search_space"] = space if isinstance(space, str) else space.to_dict()
        return entry
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Callable) and not isinstance(value, type):  # type: ignore[arg-type]  # mypy: not a class
        # An object that can be called, a partial for instance, is named by its class.
        return f"{value.__module__}:{getattr(value, '__qualname__', type(value).__qualname__)}"
    return value


def customer_options(values: Mapping[str, Any]) -> CustomerOptions:
    """The checked options of one customer; `DefinitionError` lists everything that is wrong at once."""
    try:
        return CustomerOptions(**values)
    except ValidationError as error:
        raise DefinitionError("; ".join(_sentence(item, CustomerOptions) for item in error.errors())) from None


def define(values: Mapping[str, Any]) -> Definition:
    """A checked definition; `DefinitionError` lists everything that is wrong at once."""
    try:
        return Definition(**{str(key): value for key, value in values.items()})
    except ValidationError as error:
        # Without its cause: that shows values as they are, with the secrets in them.
        raise DefinitionError("\n".join(_sentence(item) for item in error.errors())) from None


def _sentence(item: Any, model: Any = None) -> str:
    from search_spaces.errors import rule

    path = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = _fields_at(item["loc"][:-1], model or Definition)
        hint = did_you_mean(item["loc"][-1], known)
        return f"{path}: unknown key.{hint} Allowed: {', '.join(sorted(known))}."
    given = item.get("input")
    shown = "" if item["type"] in ("value_error", "missing") or isinstance(given, Mapping) else f" (got {given!r})"
    return mask_in(f"{path}: {rule(item)}{shown}" if path else rule(item))


def _fields_at(path: tuple[Any, ...], model: Any) -> list[str]:
    for part in (part for part in path if isinstance(part, str)):  # numbers are places in a list
        annotation = model.model_fields[part].annotation
        kinds = (kind for kind in (annotation, *get_args(annotation)) if hasattr(kind, "model_fields"))
        model = next(kinds, CustomerOptions)  # that of an entry of `data`, which may be of many kinds
    return list(model.model_fields)
