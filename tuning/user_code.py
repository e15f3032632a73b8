"""The user's own Python named in a definition: `package.module:function` or `file.py:function`.

A file is copied into the run directory when the run starts, so that workers on other machines and a later resume
use the same code. The modules beside it that it imports are copied with it, behind its own lines: one content, one
digest.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import importlib.util
import inspect
import json
import linecache
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TypeAlias

import numpy as np
import pandas as pd

from tuning.basics.wording import raised, separator_options
from tuning.errors import CustomerError, DataError, DefinitionError, RunError
from tuning.notes import FileCode
from tuning.storage.data_roots import DataRoots
from tuning.storage.run_directory import RunDirectory

FOLDER = "code"
MODULE = "tuning_user_code_"  # begins the name of each module that is loaded from a copy
# Between a file and, as JSON, the modules beside it.
BESIDE = "\n# The modules beside this file that it imports, as they were when it was copied:\n#: "
# Beyond so many pandas warns of each further column, unless they lie together as in a copy: those of a CSV do not.
MANY_COLUMNS = 100
Function: TypeAlias = Callable[..., object]


def is_file(name: str) -> bool:
    """True for `file.py:function`."""
    return name.partition(":")[0].endswith(".py")


def signature_of(function: Callable[..., object]) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a function by name; None where it does not say, as some of compiled code."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None


def check_form(name: str) -> None:
    """`ValueError` where a text can be neither `package.module:function` nor `file.py:function`; nothing is loaded."""
    module, _, attribute = name.partition(":")
    parts = attribute.split(".") if is_file(name) else [*module.split("."), *attribute.split(".")]
    if not all(part.isidentifier() for part in parts):
        raise ValueError(f"{name!r} is neither package.module:function nor file.py:function")


def load_function(name: str, directory: RunDirectory | None = None) -> Function:
    """The function.

    directory: of a run; a file is then the run's copy, whose digest is checked before it is run.
    """
    return loaded_function(name, source_of(name, directory))


def source_of(name: str, directory: RunDirectory | None = None) -> str | None:
    """The content of the file that a function is in, as in `load_function`; None for a function of a module."""
    if not is_file(name):
        return None
    content = _source(name) if directory is None else _copy(name.partition(":")[0], directory)
    try:
        return content.decode("utf-8")
    except ValueError as error:
        raise DefinitionError(f"{name!r}: the file is no UTF-8 text: {error}.") from error


def loaded_function(name: str, source: str | None) -> Function:
    """The function, of a file with this content, or of a module."""
    if source is None:
        return user_function(name)
    file, _, attribute = name.partition(":")
    module = _module(source.encode("utf-8"), file)
    if not hasattr(module, attribute):
        raise DefinitionError(f"{name!r}: the file has no {attribute!r}.")
    return getattr(module, attribute)


def apply_prepare(prepare: Function, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as the user's `prepare` gives it back; whatever it raises is that customer's reason.

    The frame itself stays as it is, also where the function changes what it gets.
    """
    try:
        prepared = prepare(frame.copy(deep=len(frame.columns) > MANY_COLUMNS))
    except BaseException as error:  # sys.exit(), too
        if isinstance(error, KeyboardInterrupt):
            raise
        csv = separator_options(frame.columns)
        raise CustomerError(FileCode.PREPARE_FAILED(type(error).__name__, error=raised(error), csv=csv)) from error
    if not isinstance(prepared, pd.DataFrame):
        raise CustomerError(FileCode.PREPARE_NO_FRAME(type(prepared).__name__))
    for what, labels in (("columns", prepared.columns), ("rows", prepared.index)):
        if labels.nlevels > 1:
            raise CustomerError(FileCode.PREPARE_LEVELS(what, levels=labels.nlevels))
    prepared = prepared.set_axis([str(name) for name in prepared.columns], axis=1)
    if not prepared.columns.is_unique:
        doubled = prepared.columns[prepared.columns.duplicated()][0]
        raise CustomerError(FileCode.DOUBLED_COLUMN(doubled, what="what prepare gave back"))
    return prepared


@contextmanager
def exits_raised() -> Iterator[None]:
    """Within it, `os._exit` raises `SystemExit` in this thread, as `sys.exit` does: it would end the program unsaid.

    Other threads, and processes that are forked here, end as they want.
    """
    end, process, thread = os._exit, os.getpid(), threading.get_ident()

    def raised_here(status: int) -> NoReturn:
        if (os.getpid(), threading.get_ident()) != (process, thread):
            end(status)
        raise SystemExit(f"os._exit({status}) was called")

    os._exit = raised_here
    try:
        yield
    finally:
        os._exit = end


@contextmanager
def settings_put_back() -> Iterator[None]:
    """What a user's code changes of Python's, numpy's or scikit-learn's settings ends here."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(np.errstate())
        if (scikit_learn := sys.modules.get("sklearn")) is not None:
            stack.enter_context(scikit_learn.config_context())
        yield


@contextmanager
def own_settings() -> Iterator[None]:
    """The same of a study, whose warnings are ignored."""
    with settings_put_back(), ignore_warnings():
        yield


class ignore_warnings(warnings.catch_warnings):  # noqa: N801  # reads as the context manager that it is
    """Warnings of the models stay out of the user's terminal; what matters is in the records."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")


def copy_into(name: str, directory: RunDirectory) -> str:
    """Copy the file of `file.py:function` into the run; the name under which the run knows it."""
    if not is_file(name):
        return name
    inside = name_inside(name)
    directory.write(inside.partition(":")[0], _source(name))
    return inside


def name_inside(name: str) -> str:
    """The name under which a run knows a function: that of a file carries the digest of its content."""
    if not is_file(name):
        return name
    file, _, attribute = name.partition(":")
    return f"{FOLDER}/{Path(file).stem}-{_digest(_source(name))}.py:{attribute}"


def copied_modules() -> list[ModuleType]:
    """The modules that this process has loaded from copies; no other process can import them by their names."""
    return [module for name, module in sys.modules.items() if name.startswith(MODULE)]


def dump_pickle(value: object) -> bytes:
    """Pickle a value with cloudpickle; code of a definition's own files goes along, other modules are named only."""
    import cloudpickle

    ours = copied_modules()
    for module in ours:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(value))
    finally:
        for module in ours:
            cloudpickle.unregister_pickle_by_value(module)


def _copy(file: str, directory: RunDirectory) -> bytes:
    """A run's copy of a file; `RunError` when its content is not what the run wrote. Nothing of it is run before."""
    try:
        content = directory.read(file)
    except OSError as error:
        raise RunError(f"{directory.display(file)} cannot be read: {error}. Put the run's copy back.") from error
    if _digest(content) != Path(file).stem.rpartition("-")[2]:
        raise RunError(
            f"{directory.display(file)} is not what this run has written: its SHA-256 differs from that in its name, "
            "so its code is not run. Put the run's copy back, or start a new run in another folder."
        )
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _source(name: str) -> bytes:
    """A file's content, and behind it that of the modules beside it that it imports, directly or through others."""
    try:
        path = Path(name.partition(":")[0])
        content = _content(path)
        modules = _beside(path.parent.resolve(), content, {})
    except (OSError, ValueError, DataError) as error:
        raise DefinitionError(f"{name!r}: the file cannot be read: {error}.") from error
    return content + f"{BESIDE}{json.dumps(modules, sort_keys=True)}\n".encode() if modules else content


def _content(path: Path) -> bytes:
    """`CustomerError` for what is outside the roots that data may be read from: no way around them is by code."""
    roots = DataRoots.of_process()
    roots.check(str(path))
    with roots.opened(os.path.abspath(path)) as checked:
        return Path(checked).read_bytes()


def _beside(folder: Path, content: bytes, found: dict[str, str]) -> dict[str, str]:
    """What a file imports from its own folder, added to what was found before."""
    try:
        nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):  # said when it is loaded
        return found
    imports = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    imports += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    for name in imports:
        path = folder / f"{name}.py"
        if name not in found and path.is_file() and not _installed(name, folder):
            source = _content(path)
            found[name] = source.decode("utf-8")
            _beside(folder, source, found)
    return found


def _installed(name: str, folder: Path) -> bool:
    """Whether a module is found elsewhere than in the folder."""
    if name in sys.stdlib_module_names:
        return True
    try:
        found = importlib.util.find_spec(name)
    except ValueError:  # a module that somebody has put together by hand
        return True
    return found is not None and found.origin is not None and Path(found.origin).resolve().parent != folder


def _module(content: bytes, file: str) -> ModuleType:
    name = f"{MODULE}{hashlib.sha256(content).hexdigest()[:16]}"
    source, _, modules = content.decode("utf-8").partition(BESIDE)
    return _loaded(name, source.encode("utf-8"), file, _importer(name, json.loads(modules)) if modules else None)


Importer: TypeAlias = Callable[..., ModuleType]


def _importer(prefix: str, modules: Mapping[str, str]) -> Importer:
    """`__import__` for code that was copied with these modules: they come first, under names of their own."""

    def importer(name: str, *context: object, **more: object) -> ModuleType:
        if name in modules:
            return _loaded(f"{prefix}_{name}", modules[name].encode("utf-8"), f"{name}.py", importer)
        found: ModuleType = builtins.__import__(name, *context, **more)  # type: ignore[arg-type]  # handed on as it came
        return found

    return importer


def _loaded(name: str, source: bytes, file: str, importer: Importer | None) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, os.path.basename(file))
        Path(path).write_bytes(source)
        lines = source.decode("utf-8").splitlines(keepends=True)
        linecache.cache[path] = (len(source), None, lines, path)  # for tracebacks, when the file is gone
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        if importer is not None:  # what an `import` statement of this module calls, also one within a function
            module.__dict__["__builtins__"] = {**vars(builtins), "__import__": importer}
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise DefinitionError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


@cache
def user_function(name: str) -> Function:
    """The object named by `package.module:attribute`."""
    module, _, attribute = name.partition(":")
    try:
        check_form(name)
        return attrgetter(attribute)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise DefinitionError(
            f"{name!r} cannot be imported: {error}. Write it as package.module:function, importable on every worker."
        ) from error
    except (Exception, SystemExit) as error:  # the module's own code
        raise DefinitionError(f"{name!r} cannot be imported: {type(error).__name__}: {error}.") from error
