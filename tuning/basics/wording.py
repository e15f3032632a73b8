"""How lists, guesses, long values and advice are said, in messages of every package."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import json
import math
import operator
import os
import re
import shlex
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

_READER = {"shell": False}
RUN_ADDRESS = "TUNING_RUN_ADDRESS"  # in the environment of a process of the service: that of its run there
#: The requests that do what commands do: method, what follows the run's address, and parameters for options.
REQUESTS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "delete": ("DELETE", "", {}),
    "leaderboard": ("GET", "/leaderboard", {"--output": "format"}),
    "predict": ("POST", "/predictions", {"--customer": "id", "--data": ""}),
    "report": ("GET", "/report", {"--customer": "id"}),
    "resume": ("POST", "/resume", {}),
    "show": ("GET", "/customer", {"--customer": "id"}),
}
MOST_SHORT = 4  # letters of a name of which one more or less makes another name


def name_list(names: Iterable[object], most: int = 10) -> str:
    """Column names for a message: the first ones, each cut to a readable length."""
    shown = [shorten(str(name), 40) for name in itertools.islice(names, most + 1)]
    return ", ".join(map(repr, shown[:most])) + (", …" if len(shown) > most else "")


def some_names(names: Sequence[str], most: int = 5) -> str:
    """The first names of many in full, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(repr, names[:most]))}{more}"


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The known name nearest to a misspelt one, as `` Did you mean 'x'?``; nothing when none is near."""
    given, names = str(name), [str(other) for other in known]
    plain = _spelled(given)
    swapped = {f"{plain[:i]}{plain[i + 1]}{plain[i]}{plain[i + 2 :]}" for i in range(len(plain) - 1)}
    same = [other for other in names if _spelled(other) == plain] or [o for o in names if _spelled(o) in swapped]
    near = same or [other for other in difflib.get_close_matches(given, names, n=9) if _is_near(given, other)]
    return f" Did you mean {near[0]!r}?" if near else ""


def _is_near(name: str, other: str) -> bool:
    """Whether one of two short names differs by one sign or abbreviates the other; long ones are only to be alike."""
    short, long = sorted((name, other), key=len)
    rest = iter(long)
    one = len(short) == len(long) and sum(map(operator.ne, short, long)) == 1
    return len(short) > MOST_SHORT or one or all(sign in rest for sign in short)


def _spelled(name: str) -> str:
    """A name without what is easily got wrong: capitals, zeros before a number, and signs between words."""
    return re.sub(r"[\s_-]+", "", re.sub(r"(?<![0-9])0+(?=[0-9])", "", name.casefold()))


def separator_options(columns: Collection[object], *, decimal_comma: bool = False) -> dict[str, str]:
    """Return the options of `csv` where a file with another separator was read as one column; none otherwise.

    decimal_comma: whether its numbers have one.
    """
    first = str(next(iter(columns), ""))
    found = [sep for sep in (";", "\t", "|", ",") if sep in first] if len(columns) == 1 else []
    return {"sep": found[0], **({"decimal": ","} if decimal_comma else {})} if found else {}


def separator_text(options: Mapping[str, str]) -> str:
    """Return a sentence on what to set; nothing without options."""
    if not options:
        return ""
    return f" The fields seem to be separated by {options['sep']!r}: set {csv_settings([options])}."


def separator_hint(columns: Collection[object]) -> str:
    """Return what to set where a file with another separator was read as one column; nothing otherwise."""
    return separator_text(separator_options(columns))


def csv_settings(found: Iterable[Mapping[str, str]]) -> str:
    """Return options of `csv` as YAML has them. found: several where one of them is meant."""
    signs = [", ".join(f"{name}: {_quoted_sign(sign)}" for name, sign in each.items()) for each in found]
    return " or ".join(f"`csv: {{{each}}}`" for each in signs)


def _quoted_sign(sign: str) -> str:
    """A sign as YAML has it, also one that is not seen."""
    return repr(sign) if sign.isascii() else json.dumps(sign)


def natural_order(name: str) -> str:
    """A text to sort names by so that "zone-2" comes before "zone-10": digits follow the number of them.

    It ends with the name, which decides between "7" and "07".
    """
    return f"{_DIGITS.sub(_counted, name)}\0\0{name}"


_DIGITS = re.compile("[0-9]+")


def guarded(cell: object) -> object:
    """A cell of a table that no spreadsheet runs: a text that begins as a formula does gets an apostrophe before it.

    Numbers stay as they are, also those that are texts.
    """
    risky = isinstance(cell, str) and cell[:1] in _FORMULA and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell


_FORMULA = {"=", "+", "-", "@", "\t", "\r"}
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def _counted(digits: re.Match[str]) -> str:
    number = digits[0].lstrip("0")
    return f"\0{chr(min(len(number) + 1, _MOST_DIGITS))}{number}"


_MOST_DIGITS = 0xD000  # below the code points that are no characters


def amount(number: float, noun: str) -> str:
    """How many: `1 task`, `2 tasks`, `1,000 studies`. No other place makes a plural of a number that may be 1."""
    plural = (
        f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"
    )
    return f"{number:,.12g} {noun if number == 1 else plural}"


def kinds_text(counts: Mapping[str, int]) -> str:
    """How many there are of each kind, such as `2 models, 1 record parts`."""
    return ", ".join(f"{number:,} {kind.replace('_', ' ')}" for kind, number in counts.items())


def size_text(size: float) -> str:
    """Bytes in the unit that says them shortest."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def duration(seconds: float) -> str:
    """Seconds in the unit that says them shortest."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def time_text(seconds: float) -> str:
    """Seconds exactly, as a definition may say them.

    >>> time_text(1800), time_text(5400.0), time_text(0.5)
    ('30m', '1h30m', '0.5s')
    """
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{part:g}{unit}" for part, unit in parts if part) or "0s"


def value_text(value: object, sign: str = "") -> str:
    """A value as a table shows it: numbers rounded, nothing for what is not there. sign: as of `percent`."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return ""
        value = float(f"{value:.4g}") + 0.0  # + 0.0: -0.0 is shown as 0
        return f"{value:{sign}.0f}" if 1e4 <= abs(value) < MOST_WRITTEN_OUT else f"{value:{sign}.4g}"
    return "" if value is None else str(value)


MOST_WRITTEN_OUT = 1e9  # larger numbers have an exponent


def percent(share: object, sign: str = "") -> str:
    """A share in %, three digits of it; nothing for what is not there. sign: "+" to have it of positive ones, too."""
    if not isinstance(share, float) or not math.isfinite(share):
        return ""
    value = 100 * share + 0.0
    return f"{value:{sign}.0f} %" if abs(value) >= 1000 else f"{value:{sign}.3g} %"


def gain_text(gain: object, in_percent: bool, sign: str = "") -> str:
    """A gain as users read it. in_percent: it is in % of an error. sign: "+" within a sentence."""
    if not in_percent or not isinstance(gain, float):
        return value_text(gain, sign)
    return "-inf %" if gain == -math.inf else percent(gain / 100, sign)  # the baseline made no error


def score_text(score: object, error: object = None) -> str:
    """A score with its standard error over the folds, where there is one."""
    shown = value_text(score)
    if not shown or not isinstance(error, float) or not math.isfinite(error):
        return shown
    return f"{shown} ± {error:.0f}" if error >= 100 and "e" not in shown else f"{shown} ± {error:.2g}"


def params_text(params: Mapping[str, object]) -> str:
    """A configuration as a short line, its numbers rounded."""
    return ", ".join(f"{name}={setting_text(value)}" for name, value in params.items())


def setting_text(value: object) -> str:
    """A hyperparameter's value, rounded: 1.0 is not shown as 1, which may be another setting, and None is None."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{text}.0" if isinstance(value, float) and text.lstrip("-").isdigit() else text


def better_text(metric: str, mode: str) -> str:
    """A metric and its better direction, as in "roc_auc, larger is better"."""
    return f"{metric}, {better_direction(mode)}"


def better_direction(mode: str) -> str:
    """Which scores are better, as in "larger is better"."""
    return f"{'larger' if mode == 'max' else 'smaller'} is better"


def shorten(text: str, most: int = 80) -> str:
    """The text in at most that many characters, the last one an ellipsis where something was cut off."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(error: BaseException) -> str:
    """The kind of an error and the first line of what it says, without its full stop, within a sentence.

    Libraries add pages of advice of their own.
    """
    first = next(iter(lines_of(error)), "no reason is known")
    return f"{type(error).__name__}: {shorten(first.rstrip('.'), 300)}"


def lines_of(error: BaseException) -> list[str]:
    """Return the lines of what an error says, without those that are empty."""
    return [line.strip() for line in str(error).splitlines() if line.strip()]


@contextlib.contextmanager
def advice_for_the_shell() -> Iterator[None]:
    """Within it, advice is a command to type; elsewhere it is Python, for a program or a notebook."""
    before, _READER["shell"] = _READER["shell"], True
    try:
        yield
    finally:
        _READER["shell"] = before


def option(name: str) -> str:
    """An option of a command, which in Python is an argument, and in a request a parameter."""
    if is_served() and name == "customer":
        return "`id`"
    return f"--{name}" if _READER["shell"] else f"`{name}`"


def is_served() -> bool:
    """Return whether this process works for the service: its users have no shell on this machine."""
    return RUN_ADDRESS in os.environ


def command(*words: str) -> str:
    """A command of this program, to be pasted into a shell whatever its words hold; for a reader of the service a
    request in its place, where there is one."""
    method, name, parameters = REQUESTS.get(words[0], ("", "", {}))
    options = dict(zip(words[2::2], words[3::2], strict=False))
    if not (is_served() and method and options.keys() <= parameters.keys()):
        return shlex.join(["tuning", *words])
    query = urlencode({parameters[option]: value for option, value in options.items() if parameters[option]})
    return f"{method} {os.environ[RUN_ADDRESS]}{name}{query and f'?{query}'}"


def resume_advice(run_dir: str, *, change: str = "", by_runner: bool = False) -> str:
    """How to resume a run, in the reader's language.

    change: a key of the definition to give a larger value, such as `time_budget`. by_runner: the run needs what
    only the program has that began it, a function or a frame.
    """
    if _READER["shell"]:
        return command("resume", run_dir, *(["--set", f"{change}=VALUE"] if change else []))
    part, _, key = change.partition(".")
    changed = f"{part}={{{key!r}: …}}" if key else f"{part}=…"
    if by_runner:
        return f"{f'TuneRunner(…, {changed})' if change else 'runner'}.run({run_dir!r}, resume=True)"
    return f"TuneRunner.resume({run_dir!r}{f', {changed}' if change else ''})"


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold, such as a lone surrogate, spelled out: records and files must hold it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def raised(error: BaseException, most: int = 500) -> str:
    """What a user's code has raised, in one line: its type and its words, as far as it has any."""
    try:
        words = " ".join(str(error)[: 2 * most].split())
    except Exception:  # an error that cannot say what is wrong
        words = ""
    return shorten(encodable(f"{type(error).__name__}: {words}" if words else type(error).__name__), most)


def stack(error: BaseException, most: int = 20_000) -> str:
    """An exception's traceback, for records; of a very long one the beginning and the end."""
    text = encodable("".join(traceback.format_exception(error)))
    return text if len(text) <= most else f"{text[: most // 2]}\n…\n{text[-most // 2 :]}"


_CHAINED = re.compile(r"\n(?:The above exception was|During handling of the above).*\n\n")
_FRAME = re.compile(r'^  File "(.+?)", line \d+.*\n(?:    .*\n)*', re.MULTILINE)
_LIBRARY = re.compile(r"[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python3|^<(frozen|__)|\.p(yx|xi)$")


def users_lines(text: str) -> str:
    """A traceback of `stack` without our own and libraries' lines; as it is where nothing else is in it."""
    parts = []
    for part in _CHAINED.split(text):
        frames = [frame for frame in _FRAME.finditer(part) if _is_users(frame[1])]
        if frames:
            end = part[next(reversed([*_FRAME.finditer(part)])).end() :]
            parts.append("".join([*(frame[0] for frame in frames), end]))
    return "\n".join(part.strip("\n") for part in parts) or text


def _is_users(path: str) -> bool:
    """Whether a file is neither one of ours, wherever we are installed, nor of a library."""
    own = Path(path.replace("\\", "/").rpartition(f"/{_OURS.name}/")[2])
    return not _LIBRARY.search(path) and (own.is_absolute() or not (_OURS / own).is_file())


_OURS = Path(__file__).parents[1]
