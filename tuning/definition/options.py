"""Keys of a definition that are mappings themselves, and per-customer overrides."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from textwrap import fill
from typing import Annotated, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from search_spaces import SearchSpace, presets
from search_spaces.errors import switch_for_number
from tuning.basics.wording import did_you_mean
from tuning.definition.complaints import KeyedError, refused
from tuning.definition.fields import Columns
from tuning.definition.plain_values import plain_value
from tuning.definition.reach import PATH, PLAIN, SPACE, PlainText, Reference, reach_of, references
from tuning.models.compute import Compute

MOST_GB = 1e6
SMALLEST_SHARE = 0.01  # of a CPU or GPU
LEAST_CUSTOM, MOST_CUSTOM = 0.0001, 1e6  # the least is Ray's
RAYS_OWN = {
    "cpu": "write `cpus` next to `custom`",
    "gpu": "write `gpus` next to `custom`",
    "memory": "write `memory_gb` next to `custom`",
    "object_store_memory": "no worker takes of it",
}


class Options(BaseModel):
    """Values that never change; an unknown key is an error.

    `help()`, the tables in docs/definition.md, and the JSON Schema of `tuning schema` are made from the
    descriptions of the fields.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        allow_inf_nan=False,
        json_schema_extra=lambda schema, kind: schema.update(description=kind.summary()),
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        for name, field in cls.model_fields.items():
            reach_of(name, field)  # who adds a key says what it reaches
        fields = (f"{name}: {field.description}" for name, field in cls.model_fields.items())
        wrapped = (fill(text, 100, initial_indent=" " * 4, subsequent_indent=" " * 8) for text in fields)
        cls.__doc__ = "\n".join([cls.summary(), "", "Attributes:", *wrapped])

    @classmethod
    def summary(cls) -> str:
        """Return the class's docstring without the list of its fields."""
        return (cls.__doc__ or "").partition("\n\nAttributes:")[0].strip()

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        if switch_for_number(value, cls.model_fields[info.field_name or ""].annotation):
            raise ValueError(f"must be a number (got {value!r})")
        return value

    @classmethod
    def references(cls, values: Mapping[str, object]) -> list[Reference]:
        """Return everything outside that these values name: files, URIs and databases, and code.

        values: as they stand in YAML or JSON, or as `to_dict` gives them. Nothing is checked, opened or imported here,
        while reading them as a `Definition` imports the constraints of a search space.
        """
        return list(references(cls, values))

    def to_dict(self) -> dict[str, object]:
        """Return the values that differ from their defaults, as the user would write them in YAML."""
        return {
            name: plain_value(value)
            for name, field in type(self).model_fields.items()
            if _differs(value := getattr(self, name), field.default)
        }


def _differs(value: object, default: object) -> bool:
    # A DataFrame has no single answer to "is it equal?"; its default is None.
    return value is not default and (default is None or bool(value != default))


SplitType: TypeAlias = Literal["auto", "random", "stratified", "group", "time", "stable"]


class SplitOptions(Options):
    """How rows are divided, once per customer."""

    type: SplitType = Field(
        "auto",
        description="How rows are assigned. `stratified` keeps the shares of the classes in every part. `group` "
        "keeps rows with the same value of the column `group` together. `time` holds out the latest rows by the "
        "column `column`, and every fold is later than what it is predicted from. `stable` tells each row's part by a "
        "hash of its content, or of the columns `by`, so that rows which come later move none. `auto` is `group` when "
        "`group` is given, `time` when `column` is given, `stable` when `by` is given, `time` where rows have an order "
        "by a date, which a note names, else `stratified` for classes and `random` for numbers.",
    )
    test: float = Field(0.2, gt=0, lt=1, description="Share of the rows held out for the final score, between 0 and 1.")
    folds: int = Field(3, ge=2, le=50, description="Number of cross-validation folds that score a trial.")
    group: PlainText | None = Field(
        None, description="Column with values that stay together, such as a patient or a household."
    )
    column: PlainText | None = Field(None, description="Column of the time to split by.")
    by: Columns = Field(
        (),
        description="Columns with values that decide a row's `stable` part, such as the number of an order: rows with "
        "equal ones stay together, whatever else they hold. By default all features and the target.",
    )

    @model_validator(mode="after")
    def _columns(self) -> SplitOptions:
        for kind, name, other in (("group", self.group, "column"), ("time", self.column, "group")):
            if self.kind == kind and name is None:
                field = "group" if kind == "group" else "column"
                raise ValueError(f"type {kind!r} needs `{field}`: the column to split by")
            if self.kind == kind and getattr(self, other) is not None:
                raise ValueError(f"type {kind!r} cannot be combined with `{other}`; remove one of them")
        if self.kind in ("random", "stratified") and (self.group or self.column):
            raise ValueError(f"type {self.type!r} takes neither `group` nor `column`; remove it or the type")
        if self.kind == "stable" and (self.group or self.column):
            raise ValueError("type 'stable' takes neither `group` nor `column`; rows with equal `by` stay together")
        if self.by and self.kind != "stable":
            raise ValueError(f"type {self.kind!r} cannot be combined with `by`; remove it, or use type 'stable'")
        return self

    @property
    def kind(self) -> str:
        """The type with "auto" resolved as far as the columns tell."""
        if self.type != "auto":
            return self.type
        return "group" if self.group else "time" if self.column else "stable" if self.by else "auto"


def _split(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


SplitOrType: TypeAlias = Annotated[
    SplitOptions, BeforeValidator(_split, json_schema_input_type=SplitType | SplitOptions)
]
"""The same, or the type alone."""


class CsvOptions(Options):
    """How CSV files are read, where they differ from plain comma-separated ones (options of `pandas.read_csv`)."""

    sep: PlainText = Field(",", min_length=1, description="Text between two fields.")
    decimal: PlainText = Field(".", min_length=1, max_length=1, description="Decimal point of numbers.")
    thousands: PlainText | None = Field(
        None, min_length=1, max_length=1, description="Sign between groups of digits. By default there is none."
    )
    quotechar: PlainText = Field(
        '"', min_length=1, max_length=1, description="Sign around a field that holds a separator."
    )
    comment: PlainText | None = Field(
        None,
        min_length=1,
        max_length=1,
        description="Sign after which the rest of a line is ignored. By default nothing is.",
    )
    skiprows: int = Field(0, ge=0, le=1_000_000, description="Number of lines to skip before the header.")
    na_values: tuple[PlainText, ...] = Field(
        (),
        description="Texts that mean a missing value in any column, as an empty field does. Among numbers, truth "
        "values and dates the words of pandas do, too (`NA`, `None`, `null`, …), unless the list has the empty text: "
        "then nothing else is missing than what it says.",
    )
    encoding_errors: Literal["strict", "replace", "ignore"] = Field(
        "strict",
        description="What to do with bytes that are not valid in `encoding`: refuse the file, replace them or "
        "leave them out.",
    )

    @model_validator(mode="after")
    def _signs(self) -> CsvOptions:
        for one, other in combinations(("sep", "decimal", "thousands", "quotechar", "comment"), 2):
            sign = getattr(self, one)
            quoted = one == "sep" and other in ("decimal", "thousands")  # "1,5" in quotes
            if sign is not None and sign == getattr(self, other) and not quoted:
                raise ValueError(f"{one} and {other} are both {sign!r}; no file could be read like that")
        return self


class Resources(Options):
    """What one slot reserves of the cluster."""

    cpus: float = Field(1.0, ge=SMALLEST_SHARE, le=100_000, description="Number of CPUs; a fraction shares one.")
    gpus: float = Field(0.0, ge=0, le=10_000, description="Number of GPUs; a fraction shares one.")
    memory_gb: float | None = Field(
        None, ge=0.001, le=MOST_GB, description="Memory in GB (10^9 bytes). By default none is reserved."
    )
    custom: Mapping[PlainText, Annotated[float, Field(ge=LEAST_CUSTOM, le=MOST_CUSTOM, strict=True)]] = Field(
        {}, description="Other resources that nodes of the cluster were started with, such as `{fast_disk: 1}`."
    )

    def __hash__(self) -> int:
        return hash((self.cpus, self.gpus, self.memory_gb, tuple(sorted(self.custom.items()))))

    @field_validator("gpus")
    @classmethod
    def _gpus(cls, value: float) -> float:
        if value > 1 and not value.is_integer():
            raise ValueError(f"{value!r} is neither a whole number nor a share of one GPU, which is all that Ray gives")
        if 0 < value < SMALLEST_SHARE:
            raise ValueError(f"{value!r} is less than {SMALLEST_SHARE} of a GPU; 0 takes none")
        return value

    @field_validator("custom")
    @classmethod
    def _custom(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        for name, amount in value.items():
            if not name or (instead := RAYS_OWN.get(name.lower())) is not None:
                raise ValueError(f"{name!r} is a resource of Ray's own; {instead}" if name else "a name is missing")
            if amount > 1 and not amount.is_integer():
                raise KeyedError(name, f"{amount!r} is neither a whole number nor a share of one, as Ray gives it")
        return value

    @property
    def compute(self) -> Compute:
        """What a trial trains with: a thread for each whole CPU, and one at least."""
        return Compute(max(1, int(self.cpus)), gpu=self.gpus > 0)

    def to_ray(self) -> dict[str, float]:
        """Return the resources as `ray.tune.with_resources` takes them; memory in bytes."""
        gpus = {"gpu": self.gpus} if self.gpus else {}
        memory = {"memory": self.memory_gb * 1e9} if self.memory_gb else {}
        return {"cpu": self.cpus, **gpus, **memory, **self.custom}

    def to_bundle(self) -> dict[str, float]:
        """Return the resources as a bundle of a placement group, which spells the keys otherwise."""
        return {{"cpu": "CPU", "gpu": "GPU"}.get(name, name): amount for name, amount in self.to_ray().items()}


def parse_space(value: object) -> str | SearchSpace | None:
    """Return a search space from whatever form a definition takes; the name of a preset stays a name.

    Raises:
        ValueError: an unknown preset, or a space that `SearchSpace.parse` refuses.
    """
    if value is None or isinstance(value, SearchSpace):
        return value
    if isinstance(value, str):
        if value not in presets.names():
            hint = did_you_mean(value, presets.names())
            raise ValueError(f"{value!r} is not a preset.{hint} Known: {', '.join(presets.names())}")
        return value
    return SearchSpace.parse(value)


Space: TypeAlias = Annotated[str | SearchSpace | None, SPACE, PlainValidator(parse_space)]
"""The name of a preset, or a search space; None is the default of the field."""


class CustomerOptions(Options):
    """Overrides for one customer, in a manifest or in a mapping under `data`."""

    path: Annotated[str | None, PATH] = Field(
        None, description="File of the customer's rows. Leave it out where `data` finds the customer."
    )
    search_space: Space = Field(None, description="Search space of this customer. By default it is the definition's.")
    trials: int | None = Field(
        None, ge=1, le=1_000_000, description="Number of trials for this customer. By default it is the definition's."
    )
    resources: Resources | None = Field(
        None, description="What a slot reserves while it works on this customer. By default it is the definition's."
    )
    placement: Literal["packed", "spread"] | None = Field(
        None, description="Where this customer's trials run: `packed` or `spread`. By default it is the definition's."
    )

    @field_validator("path", mode="before")
    @classmethod
    def _path(cls, value: object) -> object:
        return str(value) if isinstance(value, Path) else value


def customer_options(values: Mapping[str, object]) -> CustomerOptions:
    """Return the checked options of one customer; `DefinitionError` lists everything that is wrong at once."""
    try:
        return CustomerOptions(**{str(key): value for key, value in values.items()})
    except ValidationError as error:
        raise refused(error, CustomerOptions) from None


class WarmStart(Options):
    """A configuration to start from."""

    config: Annotated[dict[str, object], PLAIN] = Field(
        description="Values by parameter of the search space. A parameter that is left out has its default."
    )
    score: float | None = Field(
        None,
        allow_inf_nan=False,
        description="Score of the configuration in the definition's metric, if it is known from before. The "
        "algorithm then learns from it, and the configuration is not tried first.",
    )
    customer: PlainText | None = Field(None, description="Customer who gets it. By default every study does.")
