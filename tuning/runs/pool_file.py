"""The files of a run's pool: its models, what they look at, and last `trained.json`, which says that it is settled.

Each but the last one has its digest as its name, and the last one holds its own. Once that is there, the pool is never
trained again: a resume goes on with the one that earlier studies have asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tuning.basics.documents import Json
from tuning.definition.definition import Definition
from tuning.errors import StorageError
from tuning.models.pooled import FittedForm, PooledModel, RunPool, SharedFile, TargetScale
from tuning.models.registry import family as find_family
from tuning.notes import from_row
from tuning.storage.run_directory import RunDirectory

FOLDER = "pool"
TRAINED = f"{FOLDER}/trained.json"


def pool_settled(directory: RunDirectory) -> bool:
    """Return whether a run's pool is there, or that there is none."""
    return directory.exists(TRAINED)


def pool_is_due(directory: RunDirectory, definition: Definition) -> bool:
    """Return whether a run's pool is to be trained, before all else."""
    return definition.pool != "off" and not pool_settled(directory)


def write_pool(directory: RunDirectory, pool: RunPool) -> None:
    """Settle a run's pool; of two who try, the first one has settled it."""
    found: dict[str, object] = {
        "without": None if pool.without is None else pool.without.to_row(),
        "left_out": {name: why.to_row() for name, why in pool.left_out.items()},
    }
    if pool.whole is not None:
        found |= {
            "forms": [
                {
                    "description": _pair(_placed(directory, "json", form.whole.described())),
                    "models": [_written(directory, model) for model in (form.whole, form.final, *form.folds)],
                    "scores": list(form.scores),
                }
                for form in pool.forms
            ],
            "customers": dict(pool.customers),
            "typical": None if pool.typical is None else pool.typical.to_dict(),
            "typical_distance": pool.typical_distance,
            "weights": dict(pool.weights),
        }
    content = json.dumps(found, ensure_ascii=False, sort_keys=True)
    document = {"sha256": hashlib.sha256(content.encode()).hexdigest(), "pool": content}
    try:
        directory.claim(TRAINED, json.dumps(document, ensure_ascii=False).encode())
    except FileExistsError:
        return


def check_pool(directory: RunDirectory, definition: Definition) -> None:
    """Raise `StorageError` where a file of a settled pool is damaged or gone. Nothing is loaded."""
    found = None if definition.pool == "off" else _settled(directory)
    if found is None or found["without"]:
        return
    for form in found["forms"]:
        for path, sha256 in (form["description"], *(model for _, model, _ in form["models"])):
            _read(directory, SharedFile(path, sha256))


def _settled(directory: RunDirectory) -> Json | None:
    """Return what `write_pool` has written last; None where the pool is not settled."""
    try:
        document: Json = json.loads(directory.read(TRAINED))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _damaged(directory, TRAINED) from error
    content = str(document["pool"]).encode()
    _check(directory, TRAINED, content, document["sha256"])
    settled: Json = json.loads(content)
    return settled


def read_pool(directory: RunDirectory) -> RunPool | None:
    """Return a run's pool; None where it is not settled. `StorageError` where a file is damaged."""
    found = _settled(directory)
    if found is None:
        return None
    left_out = {name: from_row(why) for name, why in found["left_out"].items()}
    if found["without"]:
        return RunPool(from_row(found["without"]), left_out=left_out)
    forms = []
    for form in found["forms"]:
        described = SharedFile(*form["description"])
        empty = PooledModel.read(_read(directory, described))
        whole, final, *folds = [_with_model(directory, empty, described, *each) for each in form["models"]]
        forms.append(FittedForm(whole, final, tuple(folds), tuple(form["scores"])))
    typical = None if (level := found["typical"]) is None else TargetScale.from_dict(level)
    distance, weights = found["typical_distance"], found["weights"]
    return RunPool(None, tuple(forms), found["customers"], left_out, typical, distance, weights)


def _with_model(
    directory: RunDirectory,
    form: PooledModel,
    described: SharedFile,
    file: str,
    model: Sequence[str],
    effects: Mapping[str, Sequence[float]],
) -> PooledModel:
    """Return a form with a model as `_written` wrote it."""
    shared = SharedFile(*model)
    found = form.with_model(file, _read(directory, shared))
    return replace(found, effects=effects, files={form.description: described, f"{form.form}-{file}": shared})


def pool_of(directory: RunDirectory, definition: Definition) -> RunPool | None:
    """Return the same; None without a look where the definition wants none."""
    return None if definition.pool == "off" else read_pool(directory)


def _written(directory: RunDirectory, model: PooledModel) -> Sequence[object]:
    """Write a model; return the name of its file, path and digest of that, and the customers' effects."""
    name, content = find_family(model.family).save(model.fitted)
    return name, _pair(_placed(directory, name, content)), dict(model.effects)


def _pair(file: SharedFile) -> tuple[str, str]:
    return file.path, file.sha256


def _placed(directory: RunDirectory, name: str, content: bytes) -> SharedFile:
    digest = hashlib.sha256(content).hexdigest()
    shared = SharedFile(f"{FOLDER}/{digest[:16]}-{name}", digest)
    directory.write(shared.path, content)
    return shared


def _read(directory: RunDirectory, file: SharedFile) -> bytes:
    try:
        content = directory.read(file.path)
    except OSError as error:
        raise _damaged(directory, file.path) from error
    _check(directory, file.path, content, file.sha256)
    return content


def _check(directory: RunDirectory, name: str, content: bytes, digest: str) -> None:
    if hashlib.sha256(content).hexdigest() != digest:
        raise _damaged(directory, name)


def _damaged(directory: RunDirectory, name: str) -> StorageError:
    return StorageError(
        f"{directory.display(name)}, of the run's pool, is not what the run has written. Bring it back from a copy, or "
        "start a new run."
    )
