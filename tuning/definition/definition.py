"""The definition: what is tuned, on which data, how, and where the results go.

Keyword arguments of `TuneRunner` and the keys of a YAML file are the same fields, checked by the same model.
Unknown keys are errors that name the nearest valid one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, ValidationError, field_validator, model_validator

import schedulers
from schedulers import SchedulerSpec
from schedulers.spec import MOST_STEPS
from search_spaces import algorithms
from search_spaces.algorithms import Algorithm
from tuning.definition.baselines import Baseline, check_baseline, column_of
from tuning.definition.compared_methods import CompareOptions
from tuning.definition.complaints import KeyedError, refused
from tuning.definition.customer_limits import SIZE_LIMITS, Limits
from tuning.definition.data_source import DataSource
from tuning.definition.fields import (
    SHIPPED,
    ClassWeight,
    Code,
    Columns,
    Dates,
    Encoding,
    GivenObjective,
    Ids,
    Loggers,
    Name,
    Portfolio,
    Positive,
    SomeColumns,
    Stop,
    TargetBounds,
    TimeBudget,
)
from tuning.definition.key_rules import (
    NOT_FEATURES,
    OF_DATA,
    OF_MODELS,
    NamedColumns,
    check_form_of,
    check_roles,
    set_keys,
    some,
    with_models,
)
from tuning.definition.mlflow_options import MLflow, MLflowOptions
from tuning.definition.options import (
    CsvOptions,
    Options,
    Resources,
    Space,
    SplitOptions,
    SplitOrType,
    WarmStart,
)
from tuning.definition.reach import CODE, CODE_SWITCH, MODELS, PATH, PLAIN, PlainText
from tuning.models.bounds import AUTO
from tuning.models.entries import ModelEntry

MOST_FOLDERS = 100  # of models, where nobody says how they are to be kept


class Definition(Options):
    """One search over all customers: keyword arguments of `TuneRunner`, and the keys of a YAML file."""

    name: Name = Field(
        "search",
        description="Name of the search, its run folders and its MLflow experiment: letters, digits, spaces, `.`, "
        "`_` and `-`. In a file the default is the file's name. An objective without `data`, and a DataFrame without "
        "`by`, is a customer of that name, so that under another name its trials are other ones.",
    )
    data: DataSource = Field(
        None,
        description="Files of rows, local or `s3://…`: a glob, a file, a folder, a list of files, or a mapping of "
        "customer to file or to per-customer overrides. Every file is one customer unless `by` names key columns. "
        "In Python also a DataFrame. The formats: docs/data.md.",
    )
    by: Columns = Field(
        (), description="Key column or columns of a table. Every value, or combination of values, is one customer."
    )
    manifest: Annotated[str | None, PATH] = Field(
        None,
        description="File that lists customers with their files and per-customer overrides (docs/data.md). Give it "
        "instead of `data`, or with `data` for the overrides only.",
    )
    customers: Ids = Field((), description="Ids of the customers who get a model. By default all of them do.")
    target: PlainText | None = Field(
        None, description="Column to predict. It is required unless there is an `objective`."
    )
    features: SomeColumns | None = Field(
        None, description="Columns to predict from. By default these are all other columns."
    )
    drop: Columns = Field((), description="Columns to leave out.")
    prepare: Code | None = Field(
        None,
        description="Function `file.py:function` or `package.module:function`. It gets a customer's DataFrame and "
        "returns the one to use, with derived columns or fewer rows ([example](examples/nyc_taxi.py)).",
    )
    weight: PlainText | None = Field(None, description="Column of sample weights, for fitting and for scoring.")
    class_weight: ClassWeight = Field(
        None, description="Weights of the classes, for fitting: `balanced`, or a mapping of class to a number above 0."
    )
    encoding: Encoding = Field("utf-8", description="Encoding of CSV files.")
    csv: CsvOptions = Field(CsvOptions(), description='How CSV files are read, such as `{sep: ";", decimal: ","}`.')
    dates: Dates | None = Field(
        None,
        description="How dates in text are written: `day_first`, `month_first`, or a format such as `%d.%m.%Y %H:%M`. "
        "ISO 8601 is always understood. The default is a guess from all values of a column.",
    )
    min_rows: int = Field(
        4,
        ge=4,
        description="Least number of rows with a target. A customer with fewer gets a reason instead of a model.",
    )
    task: Literal["auto", "regression", "binary", "multiclass"] = Field(
        "auto", description="What is predicted. `auto` guesses it from the target."
    )
    positive: Positive | None = Field(
        None,
        description="Positive class of a `binary` task, which probability, precision and recall are about. By default "
        "the one called true, yes or 1, else the rarer one.",
    )
    metric: Annotated[str | None, CODE] = Field(
        None,
        description="What a model is scored by: a scikit-learn scorer or `package.module:function`. The default "
        "depends on the task. With an `objective` it names the figure that the objective reports.",
    )
    mode: Literal["max", "min"] = Field(
        "max",
        description="Whether a larger or a smaller score is better, for an `objective` and for a metric of your own.",
    )
    bounds: TargetBounds = Field(
        AUTO,
        description="Between which numbers a regression answers: `auto` is the range of its training rows' targets, "
        "widened by its width on each side. `[0, null]` names the least and the most, `null` for that of `auto`; "
        "`off` is none.",
    )
    split: SplitOrType = Field(
        SplitOptions(),
        description="How rows are divided into folds and hold-out: `{folds: 5}`, `{group: COLUMN}`, `{type: time, "
        "column: COLUMN}`.",
    )
    winner: Literal["best", "one_standard_error"] = Field(
        "best",
        description="Which trial wins: the `best` by cross-validation, or the simplest within one standard error "
        "of the best.",
    )
    ensemble: Literal["greedy", "none"] = Field(
        "greedy",
        description="Whether the model is an ensemble of the study's trials where these score better together than "
        "the winner alone: `greedy` looks for one, `none` does not. No effect with `winner: one_standard_error` and "
        "in comparisons.",
    )
    pool: Literal["auto", "on", "off"] = Field(
        "off",
        description="Whether a model of all customers' rows may be a member of each one's ensemble (docs/models.md). "
        "`auto`: where at least 20 customers have the same columns, and half of all at most 1,000 rows.",
    )
    final_fit: Literal["all", "search"] = Field(
        "all",
        description="Which rows the saved model is fitted on, after its test score is known: `all`, the hold-out "
        "included, or those of the `search`. The test score is always that of the model of the search rows.",
    )
    models: Annotated[tuple[ModelEntry, ...], MODELS] = Field(
        (),
        description="Model families, and estimators of your own (docs/models.md). By default those of `search_space`.",
    )
    allow_code: Annotated[bool, CODE_SWITCH] = Field(
        False,
        description="Whether winners that the safe format does not cover are saved with cloudpickle; whoever loads one "
        "has to allow its code, too.",
    )
    search_space: Space = Field(
        None,
        description="What is varied: the name of a preset (docs/models.md), or parameters of your own "
        "(docs/search-spaces.md). The default depends on the task.",
    )
    algorithm: Annotated[Algorithm, PLAIN, PlainValidator(algorithms.parse)] = Field(
        "optuna",
        validate_default=True,
        description="Search algorithm: a name, or `{name: …, option: …}` (docs/algorithms.md).",
    )
    scheduler: Annotated[SchedulerSpec, PLAIN, PlainValidator(schedulers.parse)] = Field(
        "asha",
        validate_default=True,
        description="What may stop a trial early: a name, or `{name: …, option: …}` (docs/schedulers.md).",
    )
    stop: Stop = Field(
        None,
        description="Rules that end a trial or a study before its budget is spent, such as `{target: 0.95}` or "
        "`{study_plateau: 20}` (docs/schedulers.md).",
    )
    portfolio: Portfolio = Field(
        SHIPPED,
        description="Configurations that every study tries first, as far as its search space has them; the first is "
        "the default `baseline`. `shipped` comes with the program, `none` is the default of a comparison. Else a YAML "
        "file, a run directory to learn from, or a list (docs/models.md).",
    )
    baseline: Baseline = Field(
        None,
        description="What models are compared with: `{column: NAME}`, your own predictions in that column; a "
        "configuration, or a model family, which studies then try first; `mean`, a constant. By default it is the "
        "first of the `portfolio` (docs/data.md#the-baseline).",
    )
    warm_start: tuple[WarmStart, ...] = Field(
        (),
        max_length=100_000,
        description="Configurations to try right after the baseline, or with a score that is known from before "
        "(docs/algorithms.md).",
    )
    trials: int = Field(20, ge=1, le=1_000_000, description="Number of trials per study, the baseline included.")
    time_budget: TimeBudget | None = Field(
        None,
        description="Wall time of the whole run, such as `30m`, `2h` or seconds. Customers that are not finished then "
        "have their best score so far, and a resume with a larger budget finishes them. By default there is no limit.",
    )
    seed: int = Field(
        0,
        ge=0,
        lt=2**32,
        description="Seed of everything random. Each customer's own follows from it and from the customer's id, which "
        "may be the definition's `name`.",
    )
    objective: GivenObjective = Field(
        None,
        description="Function or generator to tune instead of models, or where it is: `file.py:function` or "
        "`package.module:function` (docs/objectives.md). It may make a trainer of Ray Train, or be one "
        "(docs/large-trials.md).",
    )
    steps: int = Field(1, ge=1, le=MOST_STEPS, description="Number of steps of a full trial of the `objective`.")
    placement: Literal["auto", "packed", "spread"] = Field(
        "auto",
        description="Where trials run. `packed`: many studies per worker. `spread`: every trial is a Ray Tune "
        "trial, and under a scheduler that pauses trials helpers train those of each study "
        "(docs/schedulers.md#few-studies-on-many-slots). `auto` spreads the studies that would be the run's tail "
        "(docs/large-trials.md#a-giant-among-small-customers), gives helpers to few studies under a scheduler that "
        "pauses, and packs the others. Ray starts only when the run takes longer than that "
        "(docs/reliability.md#small-runs).",
    )
    storage: Annotated[str, PATH] = Field(
        "runs", min_length=1, description="Where run folders are made: a path or `s3://…`."
    )
    mlflow: MLflow = Field(
        MLflowOptions(), description="The copy of the run in MLflow; `false` switches it off (docs/mlflow.md)."
    )
    report: bool = Field(
        True, description="Whether a run ends with its report, `report.html` in its folder (docs/report.md)."
    )
    loggers: Loggers = Field(
        (),
        description="Which loggers of Ray Tune write a folder per trial: `[tensorboard, csv, json]` or some of them "
        "(docs/loggers.md). By default none does.",
    )
    limits: Limits = Field(Limits(), description="Limits of time, memory and size (docs/reliability.md).")
    slots: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Number of trials that run at the same time. The default is the number of CPUs, of the cluster if "
        "there is one.",
    )
    resources: Resources = Field(
        Resources(), description="What one slot reserves of the cluster, such as `{cpus: 2, memory_gb: 4}`."
    )
    save_models: bool = Field(True, description="Whether the run keeps the winners' models.")
    model_files: Literal["auto", "folders", "packs"] = Field(
        "auto",
        description="Where they are kept: in `folders`, one per customer, or many together in `packs`, which are ZIP "
        "archives. `auto` packs those of more than a hundred customers. Spread studies always have folders.",
    )
    compare: CompareOptions | None = Field(
        None, description="Algorithms and seeds to compare, in place of `algorithm` and `scheduler` (docs/compare.md)."
    )

    @field_validator("models", mode="plain")
    @classmethod
    def _models(cls, value: object) -> tuple[ModelEntry, ...]:
        """Return what `_parse_models` parsed, or raise its error under this field."""
        if isinstance(value, ValueError):
            raise value
        assert isinstance(value, tuple)
        return value

    @model_validator(mode="before")
    @classmethod
    def _parse_models(cls, values: object) -> object:
        """Parse `models` before all fields, since they may change other defaults."""
        return with_models(values) if isinstance(values, dict) and "models" in values else values

    @model_validator(mode="after")
    def _fits_together(self) -> Definition:
        check_baseline(self.baseline, compares=self.compare is not None, of_objective=self.objective is not None)
        self._check_models() if self.objective is None else self._check_objective()
        if self.mlflow.enabled and self.mlflow.record_models == "all" and not self.save_models:
            raise KeyedError("mlflow.record_models", "`save_models: false` keeps no model to record; leave one out")
        timed = any(rule.name == "study_time" for rule in self.stop or ())
        if timed and self.compare is not None and self.compare.seconds is not None:
            raise KeyedError("stop.study_time", "`compare.seconds` is the time of a study already; leave one out")
        return self

    def _check_models(self) -> None:
        if self.target is None:
            raise KeyedError("target", "the column to predict is missing")
        if self.data is None and self.manifest is None:
            raise KeyedError("data", "a glob, file, mapping or DataFrame is missing")
        if self.by and isinstance(self.data, Mapping):
            raise KeyedError("by", "`data` is a mapping, which names the customers already; remove one of them")
        check_roles(self.named_columns)
        if self.steps != 1:
            raise KeyedError("steps", "it is the length of an objective's trials, and models are tuned; leave it out")
        asked = "ensemble" in self.model_fields_set and self.ensemble != "none"
        if asked and self.winner == "one_standard_error":
            why = "an ensemble is never simpler than its members, which `winner: one_standard_error` is about"
            raise KeyedError("ensemble", f"{why}; remove one of them")
        if self.own_metric and self.metric is not None:
            check_form_of("metric", self.metric)

    def _check_objective(self) -> None:
        if self.search_space is None or isinstance(self.search_space, str):
            raise KeyedError("search_space", "an objective needs one of its own, there is no preset for it")
        if idle := set_keys(self, OF_MODELS):
            raise KeyedError(", ".join(idle), "no effect, since an objective is tuned instead of models")
        if self.data is None and self.manifest is None:
            limits = [f"limits.{key}" for key in set_keys(self.limits, SIZE_LIMITS)]
            if idle := [*set_keys(self, OF_DATA), *limits]:
                raise KeyedError(", ".join(idle), "no effect, since there is no `data`")

    @property
    def own_metric(self) -> bool:
        """Whether the metric is a user's function, not a scorer's name."""
        return self.objective is None and self.metric is not None and ":" in self.metric

    @property
    def own_functions(self) -> dict[str, str]:
        """The names of the user's functions by the keys that have them; of none that only exists in memory."""
        named = {"prepare": self.prepare, "metric": self.metric if self.own_metric else None}
        return {key: name for key, name in {**named, "objective": self.objective}.items() if isinstance(name, str)}

    def packs_models(self, studies: int) -> bool:
        """Return whether so many studies' models are kept in packs."""
        return self.model_files == "packs" or (self.model_files == "auto" and studies > MOST_FOLDERS)

    @property
    def wants_ensembles(self) -> bool:
        """Whether a study's model may be an ensemble of its trials."""
        simplest, compared = self.winner == "one_standard_error", self.compare is not None
        return self.ensemble == "greedy" and self.objective is None and not simplest and not compared

    @property
    def csv_options(self) -> dict[str, object]:
        """Keyword arguments of `pandas.read_csv`, and the columns that may hold classes."""
        labels = some(self.target, self.baseline_column)
        return {"encoding": self.encoding, **self.csv.model_dump(exclude_defaults=True), "labels": labels}

    @property
    def baseline_column(self) -> str | None:
        """The column of the user's own predictions, where these are the baseline."""
        return column_of(self.baseline)

    @property
    def named_columns(self) -> NamedColumns:
        """Columns of the data by the key that names them."""
        split, own = self.split, {"weight": some(self.weight), "baseline.column": some(self.baseline_column)}
        own |= {"split.group": some(split.group), "split.column": some(split.column), "split.by": split.by}
        return {"target": some(self.target), "features": self.features or (), "drop": self.drop, "by": self.by, **own}

    @property
    def not_features(self) -> tuple[str, ...]:
        """Columns other than the target that describe rows and are not predicted from."""
        return tuple(name for key in NOT_FEATURES for name in self.named_columns[key])

    def needed_of(self, names: Sequence[str]) -> list[str] | None:
        """Return the columns of a file that a search can use; None where it may need all."""
        if self.features is None or self.prepare is not None or self.objective is not None:
            return None
        wanted = {name for key, columns in self.named_columns.items() if key != "drop" for name in columns}
        return [name for name in names if name in wanted]

    def fingerprint(self) -> str:
        """Return sixteen hex digits, equal for definitions that search the same thing."""
        text = json.dumps(self.to_dict(), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def define(values: Mapping[str, object]) -> Definition:
    """Return a checked definition; `DefinitionError` lists everything that is wrong at once."""
    try:
        return Definition(**{str(key): value for key, value in values.items()})
    except ValidationError as error:
        # Without its cause: that shows values as they are, with the secrets in them.
        raise refused(error, Definition) from None
