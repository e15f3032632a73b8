"""Running what a page shows, block by block, as somebody would who reads it from top to bottom."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from commands import tuning
from matplotlib import pyplot
from named_commands import options, tuning_of_make, unknown
from page_folder import CHURN, DEFINITION, NAMES, RESULT
from pages import Block, Command, alternatives, commands, is_definition, is_other_file
from paths import ROOT
from shown_output import not_in_folder, not_printed

from search_spaces.yaml_text import parse_yaml
from tuning import TuneRunner
from tuning.definition.yaml_file import merged
from tuning.study.study import customers_of

EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.py"))]


class PageRunner:
    """Runs blocks in the current folder, and fails where one does not do what the page says.

    prepared: a finished run; one that a block reads and that is not there is a copy of it. not_run: beginnings of
    commands that are looked up only. elsewhere: patterns of addresses that nobody here has, and what to take for them.
    """

    def __init__(self, prepared: Path, not_run: Collection[str], elsewhere: Mapping[str, str]) -> None:
        self.prepared, self.not_run, self.elsewhere = prepared, not_run, elsewhere
        self.names: dict[str, Any] = {"__name__": "page"}
        self.definition, self.path = parse_yaml(CHURN), Path(DEFINITION)
        self.printed = ""

    def run_all(self, page: Iterable[Block]) -> None:
        """Run the blocks of a page in their order; files of YAML that are no definition are there beforehand."""
        page = list(page)
        for block in page:
            if block.language == "yaml" and any(is_other_file(block, each) for each in alternatives(block.text)):
                Path(block.file).write_text(block.text)
        for block in page:
            self.run(block)

    def run(self, block: Block) -> None:
        for address, ours in self.elsewhere.items():
            block = replace(block, text=re.sub(address, ours, block.text))
        ways: Mapping[str, Callable[[Block], None]] = {
            "python": self._python,
            "yaml": self._yaml,
            "console": self._console,
            "text": self._text,
            "dockerfile": self._of_others,
            "ini": self._of_others,
            "nginx": self._of_others,
            "sh": self._of_others,
        }
        way = ways.get(block.language)
        assert way is not None, (
            f"{block} is a block of {block.language or 'no language'}: write {', '.join(ways)}, or teach PageRunner it"
        )
        try:
            way(block)
        finally:
            pyplot.close("all")

    def _python(self, block: Block) -> None:
        if block.file:
            Path(block.file).write_text(block.text)
            exec(compile(block.text, block.file, "exec"), {"__name__": "page"})
            if self.path.exists() and block.file in self.path.read_text():
                TuneRunner.from_yaml(self.path).plan()  # the definition before it has another one of that name
            return
        if _is_excerpt(block.text):
            return
        self._find(block.text, made=re.findall(r"""\.run\(\s*["'](runs/[^"']+)["']\s*\)""", block.text))
        tree = ast.parse(block.text)
        for name in _not_made(tree) & NAMES.keys() - self.names.keys():
            self._find({"result": RESULT, "runner": DEFINITION}.get(name, ""))
            self.names[name] = NAMES[name]()
        shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None  # as a notebook shows it
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(tree, str(block), "exec"), self.names)
            if isinstance(shown, ast.Expr):
                value = eval(compile(ast.Expression(shown.value), str(block), "eval"), self.names)
                if value is not None:
                    out.write(f"{value!r}\n")
        self.printed += out.getvalue()

    def _yaml(self, block: Block) -> None:
        for values in alternatives(block.text):
            if is_other_file(block, values):  # a manifest, say: it is there, and the definition that names it has run
                continue
            if "parameters" in values:
                runner = TuneRunner(objective=_nothing, search_space=values, metric="loss", mode="min")
                runner.plan()
                result = runner.run()
            else:
                result = self._search(block, values)
            assert {record.status for record in result.study_records} == {"ok"}, str(block)

    def _search(self, block: Block, values: dict[str, Any]) -> Any:
        """Plan a definition, and search the last of its customers; a part of one is added to the last whole one."""
        whole = is_definition(values)
        path = Path(block.file or DEFINITION) if whole else Path("part.yaml")
        path.write_text(block.text if whole else yaml.safe_dump(merged(self.definition, values)))
        if whole:
            self.definition, self.path = values, path
        plan = TuneRunner.from_yaml(path, **({} if "slots" in values else {"slots": 8})).plan()
        self.printed += f"{plan.describe()}\n"
        customers = customers_of(plan.studies).texts("id").unique().to_pylist()
        one = {} if "objective" in values else {"customers": [max(customers)]}
        return TuneRunner.from_yaml(path, **one).run()

    def _console(self, block: Block) -> None:
        for command in commands(block):
            missing = unknown(command.words)
            missing += [each for each in re.findall(r"(?<!\S)--[\w-]+", command.comment) if each not in options()]
            assert not missing, f"{block}: there is no {', '.join(missing)}: $ {command}"
            if not any(str(command).startswith(start) for start in self.not_run):
                printed = self._run(block, command)
                lacking = not_printed(command.shown, printed)
                assert not lacking, f"{block}: {command} does not print {lacking}, but\n{printed}"

    def _run(self, block: Block, command: Command) -> str:
        words = command.words
        if words[0] == "make":
            made = [each.split() for target in words[1:] for each in tuning_of_make(target)]
            assert made, f"{block}: say in NOT_RUN why `{command}` is not run here"
            return "".join(self._run(block, Command(tuple(each))) for each in made)
        assert words[0] == "tuning", f"{block}: say in NOT_RUN why `{command}` is not run here"
        made = re.findall(r"--run-dir[ =](runs/\S+)", str(command))
        self._find(str(command), made=[*made, DEFINITION] if words[1] == "init" else made)
        answer = tuning(*words[1:])
        expected = 3 if words[1] == "demo" else 0
        assert answer.exit_code == expected, f"{block}: {command}\n{answer.output}"
        if command.to:
            Path(command.to).write_text(answer.stdout)
        self.printed += answer.output
        return answer.output

    def _text(self, block: Block) -> None:
        if block.text.partition("\n")[0].strip().endswith("/"):
            missing = not_in_folder(block.text, Path())
        else:
            missing = not_printed(block.text.splitlines(), self.printed)
        assert not missing, f"{block}: nothing before it prints {missing}, but\n{self.printed}"

    def _of_others(self, block: Block) -> None:
        """A file that another program reads: the commands of ours in it exist, with their options."""
        for command in re.findall(r"\b(tuning [a-z][^\n>]*)", block.text):
            missing = unknown(shlex.split(command))
            assert not missing, f"{block}: there is no {', '.join(missing)}: {command}"

    def _find(self, text: str, made: Collection[str] = ()) -> None:
        """Have a definition and a run wherever one is read."""
        if DEFINITION in text and DEFINITION not in made and not Path(DEFINITION).exists():
            Path(DEFINITION).write_text(CHURN)
        for name in re.findall(r"(?:(?<![\w/])|(?<=sqlite:///))runs/[\w.-]*\w", text):
            if name not in made and not Path(name).exists():
                shutil.copytree(self.prepared, name)
                if f"{name}/mlflow.db" in text:
                    assert tuning("mlflow", "sync", name).exit_code == 0


def _nothing(config: dict[str, Any]) -> float:
    return 0.0


def _not_made(tree: ast.Module) -> set[str]:
    """Names that code reads and nowhere gives a value."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    imported = [each for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for each in node.names]
    return {node.id for node in names} - made - {each.asname or each.name for each in imported}


def _is_excerpt(text: str) -> bool:
    """Whether an example has it word for word: then its own test runs it."""
    pieces = [piece.strip("\n") for piece in re.split(r"\n{2,}", text)]
    return any(all(piece in example for piece in pieces) for example in EXAMPLES)
