"""The parts of a definition that are mappings themselves, and what one customer may have otherwise."""

from __future__ import annotations

import os
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tuning.storage.names import mask
from tuning.wording import did_you_mean

SERVERS = ("http", "https", "databricks", "databricks-uc", "uc")  # of MLflow's tracking URIs
DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
EXAMPLE = "sqlite:///mlflow.db"


class Options(BaseModel):
    """Values that never change; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class SplitOptions(Options):
    """How rows are divided, once per customer.

    type: random; stratified (each part has the classes in the same shares); group (all rows with the same value of
    the column `group` are in the same part); time (by the column `column`: the latest rows are the hold-out, and a
    fold is always later than what it is predicted from). "auto" is group when `group` is given, time when `column`
    is, else stratified for classes and random for numbers.
    test: share of rows held out for the final score. folds: cross-validation folds of the search.
    """

    type: Literal["auto", "random", "stratified", "group", "time"] = "auto"
    test: float = Field(0.2, gt=0, lt=1)
    folds: int = Field(3, ge=2, le=50)
    group: str | None = None
    column: str | None = None

    @field_validator("type", mode="before")
    @classmethod
    def _grouped(cls, value: Any) -> Any:
        return "group" if value == "grouped" else value

    @model_validator(mode="after")
    def _columns(self) -> SplitOptions:
        for kind, name, other in (("group", self.group, "column"), ("time", self.column, "group")):
            if self.kind == kind and name is None:
                field = "group" if kind == "group" else "column"
                raise ValueError(f"type {kind!r} needs `{field}`: the column to split by")
            if self.kind == kind and getattr(self, other) is not None:
                raise ValueError(f"type {kind!r} does not go with `{other}`; remove it")
        if self.kind in ("random", "stratified") and (self.group or self.column):
            raise ValueError(f"type {self.type!r} takes neither `group` nor `column`; remove it or the type")
        return self

    @property
    def kind(self) -> str:
        """The type with "auto" resolved as far as the columns tell."""
        if self.type != "auto":
            return self.type
        return "group" if self.group else "time" if self.column else "auto"


class CsvOptions(Options):
    """Options of `pandas.read_csv` for CSV files that are not plain.

    sep: between fields. decimal, thousands: signs in numbers. quotechar. comment: rest of the line is ignored.
    skiprows: lines before the header. na_values: further texts that mean missing. encoding_errors: of `encoding`.
    """

    sep: str = Field(",", min_length=1)
    decimal: str = Field(".", min_length=1, max_length=1)
    thousands: str | None = Field(None, min_length=1, max_length=1)
    quotechar: str = Field('"', min_length=1, max_length=1)
    comment: str | None = Field(None, min_length=1, max_length=1)
    skiprows: int = Field(0, ge=0)
    na_values: tuple[str, ...] = ()
    encoding_errors: Literal["strict", "replace", "ignore"] = "strict"


class Resources(Options):
    """What one worker takes of the cluster while it works on a customer.

    cpus, gpus: of Ray's. memory_gb: reserved; None reserves nothing.
    """

    cpus: float = Field(1.0, gt=0)
    gpus: float = Field(0.0, ge=0)
    memory_gb: float | None = Field(None, gt=0)

    def to_ray(self) -> dict[str, float]:
        """As `ray.tune.with_resources` takes it; memory in bytes."""
        gpus = {"gpu": self.gpus} if self.gpus else {}
        memory = {"memory": self.memory_gb * 1e9} if self.memory_gb else {}
        return {"cpu": self.cpus, **gpus, **memory}


def parse_space(value: Any) -> Any:
    """A search space of whatever form a definition takes; a preset's name stays one."""
    from search_spaces import SearchSpace, presets

    if value is None or isinstance(value, SearchSpace):
        return value
    if isinstance(value, str):
        if value not in presets.names():
            hint = did_you_mean(value, presets.names())
            raise ValueError(f"{value!r} is not a preset.{hint} Known: {', '.join(presets.names())}")
        return value
    return SearchSpace.parse(value)


class CustomerOptions(Options):
    """What is otherwise for one customer: where its rows are, its search space, trials, resources."""

    path: str | None = None
    search_space: Any = None
    trials: int | None = Field(None, ge=1, le=1_000_000)
    resources: Resources | None = None

    @field_validator("path", mode="before")
    @classmethod
    def _path(cls, value: Any) -> Any:
        return str(value) if isinstance(value, Path) else value

    @field_validator("search_space")
    @classmethod
    def _search_space(cls, value: Any) -> Any:
        return parse_space(value)


class WarmStart(Options):
    """A configuration to begin with.

    config: of the search space; what it leaves out has its default. score: when it is known from before, with the
    definition's metric: the algorithm learns from it and the configuration is not tried first. customer: whose; None
    is everybody's.
    """

    config: dict[str, Any]
    score: float | None = Field(None, allow_inf_nan=False)
    customer: str | None = None


class MLflowOptions(Options):
    """The copy in MLflow.

    tracking_uri: None is `sqlite:///<run>/mlflow.db`. experiment: None is the definition's name. record_trials: which
    trials of a study get a run: all, the best K (top:K), none. record_models: which winners are logged as MLflow
    models; auto is all of them up to a hundred.
    """

    enabled: bool = True
    tracking_uri: str | None = None
    experiment: str | None = None
    record_trials: str = "all"
    record_models: Literal["auto", "all", "none"] = "auto"

    @field_validator("record_trials")
    @classmethod
    def _record_trials(cls, value: str) -> str:
        if not re.fullmatch(r"all|none|top:[1-9][0-9]{0,8}", value):
            raise ValueError(f"{value!r} is none of all, none and top:K with a whole number K, such as top:5")
        return value

    def refusal(self) -> str | None:
        """Why a copy can never come to the tracking URI, for what can be seen without asking anybody; else None."""
        uri = self.tracking_uri if self.enabled else None
        scheme = (uri or "").partition(":")[0].split("+")[0].lower()
        if not uri or scheme in SERVERS:
            return None
        shown = f"mlflow.tracking_uri: {mask(uri)!r}"
        if scheme in DATABASES:
            in_memory = scheme == "sqlite" and not uri.partition("://")[2].partition("?")[0].partition("/")[2]
            return f"{shown} is a database in memory; name a file, such as {EXAMPLE}" if in_memory else None
        if scheme == "file" or "://" not in uri:
            allowed = os.environ.get("MLFLOW_ALLOW_FILE_STORE", "").lower() in ("true", "1")
            closed = f"{shown} is a folder, into which MLflow no longer writes; name a database, such as {EXAMPLE}"
            return None if allowed else closed
        if any(plugin.name == scheme for plugin in entry_points(group="mlflow.tracking_store")):
            return None
        return f"{shown}: MLflow knows no {scheme}://; it is one of {', '.join((*SERVERS, *DATABASES))}"


class Limits(Options):
    """What one customer may cost the others.

    trial_seconds, study_seconds: wall time before the worker is ended. memory_gb: of one worker, beyond what it
    has at its start. run_seconds: budget of the whole run. crashes_before_quarantine: how often the same trial
    may end its worker. max_rows, max_columns: of one customer's data.
    """

    trial_seconds: float | None = Field(None, gt=0)
    study_seconds: float | None = Field(None, gt=0)
    run_seconds: float | None = Field(None, gt=0)
    memory_gb: float | None = Field(None, gt=0)
    crashes_before_quarantine: int = Field(2, ge=1)
    max_rows: int = Field(5_000_000, ge=1)
    max_columns: int = Field(10_000, ge=1)
