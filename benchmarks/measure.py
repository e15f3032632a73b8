"""One contender in a process of its own, watched: when it was warm, how long a trial then took, at what CPU cost.

Steady state begins when every worker has ended its first customer (or trial, or Tuner) and lasts until the results are
in the caller's hands, whatever is still written, copied or closed on the way. Everything before is start-up, less
the trials that were done meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.contenders import Contender
from benchmarks.contenders.outcome import Outcome
from benchmarks.process_tree import Usage, watching
from benchmarks.workload import ONE_THREAD, Scenario


class TooShortError(RuntimeError):
    """All trials had ended before the last worker was warm: there was no steady state."""


@dataclass(frozen=True)
class Measured:
    """What a contender took; see above for what steady state is.

    seconds, core_seconds: per trial in steady state, the latter also by_process. finish: from the last trial's end
    until the return. mb_per_10k_trials: growth of the calling process while trials ran.
    """

    contender: str
    trials: int
    steady_trials: int
    seconds: float
    core_seconds: float
    startup: float
    finish: float
    total: float
    mb_per_10k_trials: float
    score: float
    test_score: float
    details: dict[str, float | str]
    by_process: dict[str, float]


def measure(contender: Contender, scenario: Scenario, timeout: float = float("inf")) -> Measured:
    """Run a contender and take its figures; raises `RuntimeError` with its output when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        given, wanted = Path(folder, "scenario.json"), Path(folder, "outcome.json")
        given.write_text(scenario.to_json())
        usage = run_watched(["-m", "benchmarks.contenders", contender.name, str(given), str(wanted)], timeout)
        outcome = Outcome(**json.loads(wanted.read_text()))
    return figures(contender.name, outcome, usage)


def pure_fits(scenario: Scenario) -> dict[str, float]:
    """Seconds per trial by kind of serial loop (see `benchmarks.fits`)."""
    with tempfile.TemporaryDirectory() as folder:
        given, wanted = Path(folder, "scenario.json"), Path(folder, "seconds.json")
        given.write_text(scenario.to_json())
        run_watched(["-m", "benchmarks.fits", str(given), str(wanted)], float("inf"))
        found: dict[str, float] = json.loads(wanted.read_text())
    return found


def worker_split(tier: str, customers: int, trials: int) -> dict[str, float]:
    """A worker's own core-milliseconds per customer by phase (see `benchmarks.anatomy`)."""
    size = ("--tier", tier, "--customers", str(customers), "--trials", str(trials))
    environment = {**os.environ, **ONE_THREAD}
    words = [sys.executable, "-m", "benchmarks.anatomy", *size, "--output", "json"]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_watched(arguments: list[str], timeout: float) -> Usage:
    with tempfile.TemporaryFile() as output:
        environment = {**os.environ, **ONE_THREAD, "RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true"}
        child = subprocess.Popen([sys.executable, *arguments], stdout=output, stderr=output, env=environment)
        with watching(child.pid) as usage:
            try:
                code = child.wait(None if timeout == float("inf") else timeout)
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"{' '.join(arguments)} took longer than {timeout:.0f} s") from None
            finally:
                end_all(usage, child)
        if code != 0:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(arguments)} ended with code {code}:\n{text[-4000:]}")
    return usage


def end_all(usage: Usage, child: subprocess.Popen[bytes]) -> None:
    """End a process that has not ended by itself, and whatever it started."""
    if child.poll() is not None:
        return
    for pid in [child.pid, *(pid for pid in usage.roles if pid != child.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def figures(name: str, outcome: Outcome, usage: Usage) -> Measured:
    """The figures of what was seen; `TooShortError` when that was only a start."""
    trials = sum(count for _, count in outcome.events)
    warm = outcome.warm
    steady = sum(count for when, count in outcome.events if when > warm)
    if steady == 0:
        raise TooShortError(f"{name}: all {trials} trials had ended before its last worker was warm; give it more.")
    last = max(when for when, _ in outcome.events)
    seconds = (outcome.returned - warm) / steady
    grown = [usage.resident(when - 0.5, when)["driver"] for when in (warm + 0.5, last)]
    by_role = {role: used / steady for role, used in usage.cpu(warm, outcome.returned).items()}
    return Measured(
        contender=name,
        trials=trials,
        steady_trials=steady,
        seconds=seconds,
        core_seconds=sum(by_role.values()),
        startup=warm - outcome.began - (trials - steady) * seconds,
        finish=outcome.returned - last,
        total=outcome.returned - outcome.began,
        mb_per_10k_trials=(grown[1] - grown[0]) / 1e6 * 1e4 / steady,
        score=fmean(score for score, _ in outcome.winners.values()),
        test_score=fmean(score for _, score in outcome.winners.values()),
        details=outcome.details,
        by_process={role: used for role, used in by_role.items() if used > 1e-6},
    )
