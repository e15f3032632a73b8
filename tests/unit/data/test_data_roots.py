"""Nothing outside `TUNING_DATA_ROOTS` is opened: after links, at the time of opening, by whatever name."""

from __future__ import annotations

import ast
import json
import os
import socket
from contextlib import closing
from pathlib import Path

import pytest
from addresses import Listener, spellings
from file_events import IN_ACCESS, FileEvents
from paths import HELPERS, ROOT
from warm_children import run_script

from tuning.data.customers import Customer, find_customers
from tuning.data.file_access import check_readable, file_digest, file_stamp
from tuning.data.files import find_files
from tuning.data.manifest import read_manifest
from tuning.data.registry import file_source
from tuning.definition.definition import define
from tuning.errors import CustomerError, DataError, DefinitionError, PlanError, TuningError
from tuning.planning.portfolios.sources import find_portfolio
from tuning.storage.data_roots import EVERYWHERE, VARIABLE, DataRoots, add_own_rows
from tuning.storage.run_directory import RunDirectory
from tuning.user_code import source_of

OPENERS = {"open", "scandir", "walk", "listdir", "glob", "iglob", "read_text", "read_bytes", "dataset", "stat"}
OPENERS |= {"open_input_file", "open_input_stream", "getsize", "read_parquet", "memory_map", "OSFile", "ParquetFile"}
CHECKED = {
    "opened",
    "open_file",
    "found",
    "_placed",
    "find",
}  # a `with` of one of these has checked what is opened in it
#: What opens files beside these, in the packages that read data, and what it opens.
OTHERS = {
    "tuning/data/file_access.py": "objects on a storage, in a function that is called where they have been checked",
    "tuning/data/child_process.py": "the null device",
    "tuning/planning/capacity.py": "what the system says of this machine",
    "tuning/definition/yaml_file.py": "the definition itself, which the command line names",
    "tuning/planning/portfolios/sources.py": "the portfolios that come with the program",
}
ROWS = "x,y\n1,2\n3,4\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with files, links in and out, a pipe and a device; the folder that it and `outside` are in."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    for file in (root / "a.csv", root / "sub" / "b.csv", root / "é.csv", outside / "secret.csv", outside / "m.yaml"):
        file.write_text(ROWS)
    (root / "m.yaml").write_text("a: a.csv\nout: out.csv\n")
    (root / "inner.csv").symlink_to(root / "a.csv")
    (root / "out.csv").symlink_to(outside / "secret.csv")
    (root / "away").symlink_to(outside)
    (root / "gone.csv").symlink_to(outside / "nothing.csv")
    (root / "zero.csv").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe.csv")
    monkeypatch.setenv(VARIABLE, str(root))
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("names", [3000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_of_thousands_of_names_none_is_opened_outside_the_root(tree: Path, names: int) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listening, closing(FileEvents(tree / "outside", IN_ACCESS)) as reads:
        listening.bind(str(tree / "root" / "socket.csv"))
        done = run_script(HELPERS / "reading_below_roots.py", str(tree), str(names))
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["opened"] == []
        assert found["refused"] > 0.3 * names
        assert found["read"] > 150
        assert [*reads.read()] == []
        (tree / "outside" / "secret.csv").read_text()
        assert len([*reads.read()]) == 1  # it would have heard one


def test_links_are_followed_within_the_root_alone(tree: Path) -> None:
    root = tree / "root"
    assert [Path(file.path).name for file in find_files(str(root / "*.csv"))] == [
        *("a.csv", "gone.csv", "inner.csv", "out.csv", "pipe.csv", "zero.csv", "é.csv"),
    ]
    assert len(file_source(str(root / "inner.csv"), {}).read()) == 2
    for name, said in (
        ("out.csv", "out.csv is a link, or below one, that leads out of what may be read here"),
        ("away/secret.csv", "secret.csv is a link, or below one"),
        ("zero.csv", "zero.csv is a link, or below one"),
        ("pipe.csv", "pipe.csv is a pipe or a device, a file is expected"),
        ("gone.csv", "the file gone.csv is not there"),
        ("sub", "sub is a folder, a file is expected"),
    ):
        with pytest.raises(CustomerError, match=said) as refused:
            file_source(str(root / name), {}).read()
        assert "outside" not in str(refused.value)
        assert file_stamp(str(root / name)) == "" or name in ("sub", "pipe.csv")
        assert file_digest(str(root / name)) in ("CustomerError", "FileNotFoundError")
    for pattern in ("away", "away/*.csv", "*/*.csv"):
        with pytest.raises(DataError, match=r"^data: away is a link"):
            find_files(str(root / pattern))
    sizes = find_customers(define({"data": f"{root}/*.csv", "target": "y"})).numbers("size")
    assert sizes.tolist() == [len(ROWS), 0, len(ROWS), 0, 0, 0, len(ROWS)]


def test_a_place_elsewhere_is_refused_by_its_name_in_every_key(tree: Path) -> None:
    elsewhere = [str(tree / "outside" / "m.yaml"), f"{tree}/root/../outside/m.yaml", "/etc/passwd", "~/m.yaml"]
    elsewhere += [f"file://{tree}/root/a.csv", "s3://bucket/a.csv", f"{tree}/rooted/a.csv", "../outside/m.yaml"]
    for place in elsewhere:
        definition = define({"data": "x.csv", "target": "y", "portfolio": place})
        for key, error, attempt in (
            ("data", DataError, lambda place=place: find_files(place)),
            ("manifest", DataError, lambda place=place: read_manifest(place)),
            ("portfolio", PlanError, lambda definition=definition: find_portfolio(definition, None)),
        ):
            with pytest.raises(error, match=rf"^{key}: .* is not below what may be read here") as refused:
                attempt()
            assert repr(place) in str(refused.value)
    code = tree / "outside" / "code.py"
    code.write_text("import secret\ndef clean(rows): return rows\n")
    with pytest.raises(DefinitionError, match="is not below what may be read here"):
        source_of(f"{code}:clean")


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ("{parameters: {x: {type: int, low: 1, high: 2}}, constraints: ['os:putenv']}", "'os:putenv' is code"),
        ("{parameters: {fs: {type: choice, values: [/etc/passwd]}}}", "'/etc/passwd' is a file or an address"),
    ],
)
def test_a_manifest_is_data_and_names_no_code(
    tree: Path, monkeypatch: pytest.MonkeyPatch, space: str, said: str
) -> None:
    manifest = tree / "root" / "coded.yaml"
    manifest.write_text(f"a: {{path: a.csv, search_space: {space}}}\n")
    with pytest.raises(DataError, match=said):
        read_manifest(str(manifest))
    monkeypatch.delenv(VARIABLE)
    assert list(read_manifest(str(manifest))) == ["a"]


def test_what_was_checked_is_what_is_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is swapped for a link out of the root between the check and the opening."""
    file, readlink = tree / "root" / "a.csv", os.readlink
    (tree / "outside" / "secret.csv").write_text("secret\n1\n")

    def swapped(path: str) -> str:
        found = readlink(path)
        if path.startswith("/proc/self/fd/"):
            file.rename(tree / "root" / "before")
            file.symlink_to(tree / "outside" / "secret.csv")
        return found

    monkeypatch.setattr(os, "readlink", swapped)
    with DataRoots.of_process().opened(str(file)) as checked:
        assert Path(checked).read_text() == ROWS
    assert "secret" in file.read_text()


def test_a_run_reads_its_own_rows_wherever_it_is(tree: Path) -> None:
    directory = RunDirectory(tree / "outside" / "run")
    directory.write("data/1.csv", ROWS.encode())
    with pytest.raises(CustomerError):
        file_source(directory.locate("data/1.csv"), {}).read()
    add_own_rows(directory.locate("data"))
    assert len(file_source(directory.locate("data/1.csv"), {}).read()) == 2
    with pytest.raises(CustomerError):
        file_source(str(tree / "outside" / "secret.csv"), {}).read()


def test_files_that_are_handed_to_own_code_are_looked_at_before(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_readable([str(tree / "root" / "a.csv"), str(tree / "root" / "inner.csv")])
    with pytest.raises(CustomerError, match=r"out\.csv is a link, or below one"):
        check_readable([str(tree / "root" / "a.csv"), str(tree / "root" / "out.csv")])
    monkeypatch.delenv(VARIABLE)
    check_readable([str(tree / "root" / "out.csv")])


def test_of_an_earlier_run_below_the_root_no_link_is_followed_out_of_it(tree: Path) -> None:
    terms = tree / "root" / "run" / "terms"
    terms.mkdir(parents=True)
    (terms / "0001.json").symlink_to(tree / "outside" / "secret.csv")
    definition = define({"data": "x.csv", "target": "y", "portfolio": str(terms.parent)})
    with pytest.raises(PlanError, match=r"0001\.json is a link, or below one"):
        find_portfolio(definition, None)


def test_what_is_closed_is_no_data_of_the_folder_around_it(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree / "root"
    monkeypatch.setenv(VARIABLE, f"{root}\n!{root}/sub\n!{root}/a.csv\n")
    (root / "away").unlink()
    (root / "in.csv").symlink_to(root / "sub" / "b.csv")
    for pattern in (str(root), f"{root}/**/*.csv"):
        assert {Path(file.path).name for file in find_files(pattern)}.isdisjoint({"a.csv", "b.csv"})
    for name in ("sub/b.csv", "a.csv", "in.csv", "inner.csv"):
        with pytest.raises(CustomerError):
            file_source(str(root / name), {}).read()
    assert len(file_source(str(root / "é.csv"), {}).read()) == 2


@pytest.mark.parametrize(
    ("roots", "place", "inside"),
    [
        ("/a:/b", "/b/x.csv", True),
        ("/a:s3://bucket/c", "s3://bucket/c/x.csv", True),
        ("/a:s3://bucket/c", "S3://bucket/c/x.csv", True),
        ("s3://bucket/c/", "s3://bucket/c", True),
        ("s3://bucket/c", "s3://bucket/cc/x.csv", False),
        ("s3://bucket/c", "s3://bucket/c/../d/x.csv", False),
        ("s3://bucket/c", "s3://bucket/c/%2e%2E/d/x.csv", False),
        ("s3://bucket/c", "s3://bucket/c/%252e%252e%252fd/x.csv", False),
        ("s3://bucket/c", "s3://bucket/c/..\\d", False),
        ("s3://bucket/c", "s3://user:word@bucket/c/x.csv", False),
        ("s3://bucket/c", "s3://bucket/c/x.csv?endpoint_override=127.0.0.1:1", False),
        ("s3://bucket/c", "s3://bucket?endpoint_override=127.0.0.1:1/c/x.csv", False),
        ("s3://bucket/c?region=x", "s3://bucket/c/x.csv?region=x", True),
        ("s3://bucket/c", "gs://bucket/c/x.csv", False),
        ("s3://bucket", "bucket/x.csv", False),
        ("/a:b\n", "/a:b/x.csv", True),
        ("/a:b\n", "/a", False),
        ("/", "/x.csv", True),
    ],
)
def test_roots_are_folders_and_addresses_and_hold_part_by_part(
    roots: str, place: str, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, roots)
    if inside:
        DataRoots.of_process().check(place)
        return
    with pytest.raises(CustomerError, match="is not below what may be read here") as refused:
        DataRoots.of_process().check(place)
    assert "word" not in str(refused.value)


def test_a_variable_that_lists_nothing_is_no_leave_to_read_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert DataRoots.of_process() == EVERYWHERE
    monkeypatch.setenv(VARIABLE, "")
    assert DataRoots.of_process() == EVERYWHERE
    for wrong in ("\n", ":", "data", "/a:data"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(DataError, match=VARIABLE):
            DataRoots.of_process()


def test_no_other_code_opens_a_file_of_data() -> None:
    """In the packages that read data, files are opened within a `with` that has checked them."""
    found: dict[str, set[str]] = {}
    for package in ("data", "planning", "definition", "evaluation", "preprocessing", "study", "user_code.py"):
        place = ROOT / "tuning" / package
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for name in _unchecked(ast.parse(file.read_text()), checked=False):
                found.setdefault(str(file.relative_to(ROOT)), set()).add(name)
    assert {file: names for file, names in found.items() if file not in OTHERS} == {}
    assert found.keys() == OTHERS.keys()
    assert found["tuning/planning/portfolios/sources.py"] == {"read_bytes"}
    assert set(_unchecked(ast.parse("with opened(x) as y:\n  open(y)\nos.scandir(y)"), checked=False)) == {"scandir"}


def _unchecked(node: ast.AST, *, checked: bool) -> list[str]:
    """What opens files outside a `with` that checks them."""
    found: list[str] = []
    if isinstance(node, ast.With):
        names = {_called(call) for item in node.items for call in ast.walk(item) if isinstance(call, ast.Call)}
        checked |= bool(names & CHECKED)
    if isinstance(node, ast.Call) and not checked and _called(node) in OPENERS:
        found.append(_called(node))
    return found + [name for child in ast.iter_child_nodes(node) for name in _unchecked(child, checked=checked)]


def _called(call: ast.Call) -> str:
    name = ast.unparse(call.func)
    return "" if name == "ast.walk" else name.rpartition(".")[2]


@pytest.mark.long
def test_no_spelling_of_an_address_is_connected_to(tree: Path) -> None:
    """By the engine alone, without anybody at a door."""
    listener = Listener()
    with closing(listener.server):
        for text in spellings(listener.port):
            (tree / "root" / "named.yaml").write_text(json.dumps({"acme": text}))
            (tree / "root" / "named.csv").write_text(f"customer,path\nacme,{json.dumps(text)}\n")
            definitions: list[dict[str, object]] = [
                {"data": text},
                {"data": [text]},
                {"data": {"acme": text}},
                {"data": {"acme": {"path": text}}},
                {"data": text, "by": "x"},
                {"manifest": text},
                {"manifest": f"{tree}/root/named.yaml"},
                {"manifest": f"{tree}/root/named.csv"},
                {"data": f"{tree}/root/a.csv", "portfolio": text},
                {"data": f"{tree}/root/a.csv", "prepare": f"{text}.py:clean"},
            ]
            for values in definitions:
                _use(values)
        assert listener.connections() == 0
        with socket.create_connection(("127.0.0.1", listener.port)):
            assert listener.connections() == 1  # it would have counted one


def _use(values: dict[str, object]) -> None:
    """Open whatever a definition names; none of it can be opened."""
    said = ""
    customers: list[Customer] = []
    try:
        definition = define({"target": "y", **values})
        customers = list(find_customers(definition))
        find_portfolio(definition, None)
        if definition.prepare is not None:
            source_of(definition.prepare)
        assert isinstance(values.get("data"), dict) or "manifest" in values, values
    except TuningError as error:
        said = str(error)
    assert "password" not in said
    for customer in customers:
        if customer.files[0].startswith("/") and os.path.isfile(customer.files[0]):
            continue
        with pytest.raises(CustomerError):
            file_source(customer.files[0], {}).read()
        assert file_stamp(customer.files[0]) == ""
