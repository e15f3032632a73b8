"""A winner, or a release, as the folder of an MLflow model: it is served by `mlflow models serve` from what is in it.

Beside the model's own files there are its signature, five rows as an example, pinned requirements of its family only,
and the code that loads it, because no package index has tuning-service. MLflow is given everything that it would
find out by importing the model in a fresh process, which takes 7.5 s each.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.basics.documents import Json
from tuning.basics.environment import installed_version
from tuning.models.model_files import Description, inputs, parts
from tuning.tracking import loader

if TYPE_CHECKING:
    from mlflow.models import Model
    from mlflow.types import ColSpec

    from tuning.tracking.release_folder import ReleaseFolder

LOADER = "tuning_service_loader"  # the loader's name in a model: a module of its own, beside whatever else is there
# What `tuning.models` may import by the order of packages in pyproject.toml, so that whatever it does import is there;
# and how rows name their customer.
CODE = (
    *("__init__.py", "errors.py", "steps.py", "user_code.py", "data/__init__.py", "data/keys.py"),
    *("basics", "models", "notes", "preprocessing", "records", "storage"),
)
# mlflow-skinny is MLflow without its server of runs: enough to serve a model, and a tenth of the packages.
EVERY_MODEL = ("mlflow-skinny", "numpy", "pandas", "pyarrow", "cloudpickle")
SCIKIT_LEARN = ("scikit-learn", "skops")
OF_SCIKIT_LEARN = (".skops", ".pkl", ".zip")  # files that they read; the last one holds a forest's trees


def save_mlflow_model(target: Path, source: Path, description: Description, model: Model) -> None:
    """Write the folder of an MLflow model.

    target: the folder to make. source: the winner's folder, as a run keeps it. description: what its `model.json`
    says. model: MLflow's own, with the ids of the model and of its run.
    """
    from mlflow.types import ColSpec, DataType

    from tuning.preprocessing.task import Task  # with pandas, which the copy of trials does without

    task = Task(description["task"], tuple(description["classes"]))
    classes = [task.classes[code] for code in task.in_order]
    answer = DataType.double
    if classes:
        kinds = {bool: DataType.boolean, int: DataType.long, float: DataType.double}
        answer = kinds.get(type(classes[0]), DataType.string)
    taken = inputs(description)
    example = description.get("example")
    if example and not set(taken) <= set(example["columns"]):
        example = None
    metadata = {
        "columns": dict(description["columns"]),
        "classes": classes,
        "family": description["family"],
        "families": [family for family, _ in parts(description)],
        loader.DIGEST: hashlib.sha256((source / "model.json").read_bytes()).hexdigest(),
    }
    _save(
        target,
        source,
        model,
        taken=taken,
        answer=[ColSpec(answer, "prediction")],
        intervals=description.get("residuals") is not None,
        example=example,
        parts=parts(description),
        metadata=metadata,
    )


def save_mlflow_release(target: Path, release: ReleaseFolder, model: Model) -> None:
    """Write the folder of an MLflow model that answers for all customers of a release; arguments as of the above."""
    from mlflow.types import ColSpec, DataType
    from mlflow.types.schema import AnyType

    _save(
        target,
        release.folder,
        model,
        taken={**dict.fromkeys(release.columns, False), **dict.fromkeys(release.by or (loader.CUSTOMER,), True)},
        answer=[ColSpec(AnyType(), "prediction"), ColSpec(DataType.string, loader.ANSWER)],
        intervals=True,
        example=release.example,
        parts=sorted(release.parts),
        metadata={"by": list(release.by), loader.DIGEST: release.sha256},
    )


def _save(
    target: Path,
    source: Path,
    model: Model,
    *,
    taken: Mapping[str, bool],
    answer: Sequence[ColSpec],
    intervals: bool,
    example: Json | None,
    parts: Sequence[tuple[str, str]],
    metadata: Json,
) -> None:
    import mlflow.pyfunc
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    # Any: our models take integers, floats, booleans and missing values alike; MLflow's "double" refuses integers.
    inputs = Schema([ColSpec(AnyType(), name, required=needed) for name, needed in taken.items()])
    params = [ParamSpec(loader.METHOD, DataType.string, loader.METHODS[0])]
    if intervals:
        params.append(ParamSpec(loader.INTERVAL, DataType.double, None))
    mlflow.pyfunc.save_model(
        path=str(target),
        loader_module=LOADER,
        data_path=str(source),
        code_paths=[str(path) for path in _write_code(target.with_name("code"))],
        mlflow_model=model,
        signature=ModelSignature(inputs, Schema(list(answer)), ParamSchema(params)),
        input_example=pd.DataFrame(example["data"], columns=example["columns"]) if example else None,
        pip_requirements=requirements(parts),
        metadata=metadata,
    )


def requirements(parts: Sequence[tuple[str, str]]) -> list[str]:
    """Pinned packages that a model needs, as they are installed here.

    parts: family and file of each fitted model in it; the file's ending tells which library wrote it.
    """
    from tuning.models.registry import families  # with pandas, only where models are logged

    choices: list[tuple[str, ...]] = [(name,) for name in EVERY_MODEL]
    built_in = [families()[name] for name, _ in parts if name in families()]  # the others are the user's own
    choices += [each.libraries for each in built_in if each.libraries]
    if any(file.endswith(OF_SCIKIT_LEARN) for _, file in parts):
        choices += [(name,) for name in SCIKIT_LEARN]
    return [pinned for names in dict.fromkeys(choices) if (pinned := _pinned(names))]


@cache
def _pinned(names: tuple[str, ...]) -> str:
    return next((f"{name}=={found}" for name in names if (found := installed_version(name))), "")


def _write_code(folder: Path) -> list[Path]:
    """The loader and the code that it imports, as files."""
    folder.mkdir()
    files = {f"{LOADER}.py": Path(loader.__file__).read_bytes(), loader.CODE: _code()}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in files]


@cache
def _code() -> bytes:
    """The modules below `CODE`, zipped: 80 KB in one file, which is one request to a server instead of sixty."""
    root = Path(loader.__file__).parents[1]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in CODE:
            path = root / part
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                name = zipfile.ZipInfo(f"tuning/{file.relative_to(root).as_posix()}")  # of 1980, whenever it is made
                archive.writestr(name, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()
