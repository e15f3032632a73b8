"""Two processes race for one run, again and again; one that sleeps while another takes over wakes up.

    python tests/helpers/racers.py race RUN ROUNDS
    python tests/helpers/racers.py wake RUN

Racers are forks of this process. In each round both resume the run with one more trial; the winner's objective waits
until the other has been refused, so that the race is never over before it began. Prints a line of JSON per round.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

PATIENCE_S = 90
_gate = os.pipe()  # a byte lets one waiting objective go on
_reached = os.pipe()  # a byte for each objective that waits
_dead_after_s = 20.0


def objective(config: dict[str, float], seed: int) -> float:
    """Waits at the gate the first time in each process."""
    from builders import valley

    if os.environ.pop("RACER", None):
        os.write(_reached[1], b".")
        _wait(_gate[0])
    return valley(config, seed)


def _wait(pipe: int) -> None:
    assert select.select([pipe], [], [], PATIENCE_S)[0], "nobody came"
    os.read(pipe, 1)


def _child(action: Callable[[], object]) -> int:
    """A fork that does this; it ends with 0, with 1 when it was refused, with 2 after any other failure."""
    from tuning.errors import RunOwnedError

    child = os.fork()
    if child:
        return child
    code = 2
    try:
        os.environ["RACER"] = "1"
        action()
        code = 0
    except RunOwnedError:
        code = 1
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(code)


def _resume(run: str, **changes: int) -> None:
    from tuning import TuneRunner
    from tuning.basics.timing import Timing
    from tuning.runs.plan_file import frozen_definition
    from tuning.storage.run_directory import RunDirectory

    runner = TuneRunner(frozen_definition(RunDirectory(run)), **changes)
    runner.timing = Timing(heartbeat_s=0.02, look_s=0.02, dead_after_s=_dead_after_s)
    runner.run(run, progress=False, in_process=True, resume=True)


def race(run: str, rounds: int) -> None:
    """Each round has one winner, who owns the newest term."""
    from tuning.records.ownership import newest_claimed
    from tuning.runs.plan_file import frozen_definition
    from tuning.storage.run_directory import RunDirectory

    directory = RunDirectory(run)
    trials = frozen_definition(directory).trials
    for number in range(rounds):
        start, go = os.pipe()

        def racer(start: int = start, trials: int = trials + number + 1) -> None:
            _wait(start)
            _resume(run, trials=trials)

        children = [_child(racer), _child(racer)]
        os.write(go, b"..")
        ends: dict[int, int] = {}
        while len(ends) < 2:
            child, status = os.wait()
            ends[child] = os.waitstatus_to_exitcode(status)
            if len(ends) == 1:
                os.write(_gate[1], b".")  # the other one may go on: it is the owner, or both have failed
        os.close(start)
        os.close(go)
        while select.select([_gate[0]], [], [], 0)[0]:
            os.read(_gate[0], 1)
        owner = newest_claimed(directory)
        assert owner is not None
        won = [child for child in children if ends[child] == 0]
        print(json.dumps({"codes": sorted(ends.values()), "won": won, "term": owner.number, "owner": owner.owner.pid}))


def wake(run: str) -> None:
    """The owner sleeps in a trial; another one finds its counter still, takes over and finishes; then it wakes up."""
    sleeper = _child(lambda: _resume(run))
    _wait(_reached[0])
    os.kill(sleeper, signal.SIGSTOP)
    os.waitpid(sleeper, os.WUNTRACED)
    heir = _child(lambda: os.environ.pop("RACER") and _resume(run))
    took = os.waitstatus_to_exitcode(os.waitpid(heir, 0)[1])
    os.write(_gate[1], b".")
    os.kill(sleeper, signal.SIGCONT)
    woke = os.waitstatus_to_exitcode(os.waitpid(sleeper, 0)[1])
    print(json.dumps({"took": took, "woke": woke}))


def main() -> None:
    global _dead_after_s
    from tempfile import TemporaryDirectory

    from builders import tuner_of

    with TemporaryDirectory() as folder:  # load what a run needs once, for all forks
        tuner_of(objective, trials=4).run(f"{folder}/run", progress=False, in_process=True)
    if sys.argv[1] == "race":
        race(sys.argv[2], int(sys.argv[3]))
    else:
        _dead_after_s = 0.2  # the sleeper stands still for certain
        wake(sys.argv[2])


if __name__ == "__main__":
    sys.modules["racers"] = sys.modules["__main__"]  # the run's objective is in this very module
    main()
