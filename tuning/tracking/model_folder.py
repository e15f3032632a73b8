"""A winner, or a release, as the folder of an MLflow model: `mlflow models serve` serves it from what is in it.

It holds the model's own files, a signature, five rows as an example, the pinned requirements of its families, and the
code that loads it, because no package index has tuning-service. `pyfunc.log_model` would import the model to find these
out, and ask the server for each metric of its run.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.basics.documents import Json
from tuning.basics.environment import installed_version
from tuning.models.model_files import Description, inputs, parts
from tuning.tracking import loader

if TYPE_CHECKING:
    from mlflow.models import Model

LOADER = "tuning_service_loader"  # the loader's name in a model: a module that needs no package
# What `tuning.models` may import by the order of packages in pyproject.toml, and how rows name their customer.
CODE = (
    *("__init__.py", "errors.py", "steps.py", "user_code.py", "data/__init__.py", "data/keys.py"),
    *("basics", "models", "notes", "preprocessing", "records", "storage"),
)
# mlflow-skinny is MLflow without its server of runs: enough to serve a model, and a tenth of the packages.
EVERY_MODEL = ("mlflow-skinny", "numpy", "pandas", "pyarrow", "cloudpickle")
SCIKIT_LEARN = ("scikit-learn", "skops")
OF_SCIKIT_LEARN = (".skops", ".pkl", ".zip")  # files that they read; the last one holds a forest's trees


def save_winner(target: Path, source: Path, description: Description, own: Model) -> None:
    """Write the folder of an MLflow model.

    Args:
        target: The folder to make.
        source: The winner's folder, as a run keeps it.
        description: What its `model.json` says.
        own: MLflow's model, with the ids of the model and of its run.
    """
    from tuning.preprocessing.task import Task  # with pandas, which the copy of trials does without

    task = Task(description["task"], tuple(description["classes"]))
    classes = [task.classes[code] for code in task.in_order]
    kinds = {bool: "boolean", int: "long", float: "double"}
    example = description.get("example")
    taken = inputs(description)
    save(
        target,
        source,
        own,
        taken=taken,
        answer={"prediction": kinds.get(type(classes[0]), "string") if classes else "double"},
        intervals=description.get("residuals") is not None,
        example=example if example and set(taken) <= set(example["columns"]) else None,
        parts=parts(description),
        metadata={
            "columns": dict(description["columns"]),
            "classes": classes,
            "family": description["family"],
            "families": [family for family, _ in parts(description)],
            loader.DIGEST: hashlib.sha256((source / "model.json").read_bytes()).hexdigest(),
        },
    )


def save(
    target: Path,
    source: Path,
    own: Model,
    *,
    taken: Mapping[str, bool],
    answer: Mapping[str, str | None],
    intervals: bool,
    example: Json | None,
    parts: Iterable[tuple[str, str]],
    metadata: Json,
) -> None:
    """Write the folder of an MLflow model of the files in another one.

    Args:
        target, own: As of `save_winner`.
        source: The files.
        taken: Columns that the model takes, and whether each must be there.
        answer: Columns of its answer, with MLflow's type; None is any.
        intervals: Whether it gives intervals.
        example: Rows to try it with.
        parts: Family and file of each fitted model in it.
        metadata: What MLflow keeps of it besides.
    """
    import mlflow.pyfunc
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    # Any: our models take integers, floats, booleans and missing values alike; MLflow's "double" refuses integers.
    columns = Schema([ColSpec(AnyType(), name, required=needed) for name, needed in taken.items()])
    answers = Schema([ColSpec(DataType[kind] if kind else AnyType(), name) for name, kind in answer.items()])
    params = [ParamSpec(loader.METHOD, DataType.string, loader.METHODS[0])]
    if intervals:
        params.append(ParamSpec(loader.INTERVAL, DataType.double, None))
    code = target.with_name("code")
    code.mkdir()
    (code / f"{LOADER}.py").write_bytes(Path(loader.__file__).read_bytes())
    (code / loader.CODE).write_bytes(_code())
    mlflow.pyfunc.save_model(
        path=str(target),
        loader_module=LOADER,
        data_path=str(source),
        code_paths=[str(path) for path in sorted(code.iterdir())],
        mlflow_model=own,
        signature=ModelSignature(columns, answers, ParamSchema(params)),
        input_example=pd.DataFrame(example["data"], columns=example["columns"]) if example else None,
        pip_requirements=requirements(parts),
        metadata=metadata,
    )


def requirements(parts: Iterable[tuple[str, str]]) -> list[str]:
    """Return the pinned packages that a model needs, as they are installed here.

    parts: family and file of each fitted model in it; the file's ending tells which library wrote it.
    """
    from tuning.models.registry import families  # with pandas, only where models are logged

    parts = sorted(parts)
    choices: list[tuple[str, ...]] = [(name,) for name in EVERY_MODEL]
    built_in = [families()[name] for name, _ in parts if name in families()]  # the others are the user's own
    choices += [each.libraries for each in built_in if each.libraries]
    if any(file.endswith(OF_SCIKIT_LEARN) for _, file in parts):
        choices += [(name,) for name in SCIKIT_LEARN]
    return [pinned for names in dict.fromkeys(choices) if (pinned := _pinned(names))]


@cache
def _pinned(names: Sequence[str]) -> str:
    return next((f"{name}=={found}" for name in names if (found := installed_version(name))), "")


@cache
def _code() -> bytes:
    """The modules below `CODE`, zipped: 80 KB in one file, which is one request to a server instead of sixty."""
    root, content = Path(loader.__file__).parents[1], io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (root / part for part in CODE):
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                archive.write(file, f"tuning/{file.relative_to(root).as_posix()}")
    return content.getvalue()
