"""The program of all child processes of the server: `python -m tuning.service.child BYTES`.

A question is a line of JSON on stdin: the function to call, as `module:name`, and its values. The answer is a line of
JSON with what the function returns, or the error that it raises. A process ends with its input, or when nobody has
asked it for long, and with the thread that has started it, so that nothing is left when the server is killed.
BYTES are of memory for data, also of each process that it starts.
"""

from __future__ import annotations

import ctypes
import json
import os
import pkgutil
import resource
import select
import signal
import sys

from tuning.basics.documents import Json
from tuning.basics.wording import advice_for_the_shell
from tuning.errors import failure

IDLE_S = 900.0  # after so long without a question a process ends by itself
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def answer(question: Json) -> Json:
    """Return `made`, what a function has returned, or `error`, the `tuning.errors.failure` of what it has raised."""
    try:
        with advice_for_the_shell():  # of which the readers of a server get requests
            made = pkgutil.resolve_name(question["function"])(**question["values"])
        return {"made": made}
    except (Exception, SystemExit) as error:  # of a model
        return {"error": failure(error)}


def plan(definition: Json) -> Json:
    """Return the plan of a definition, as `tuning plan --output json` prints it."""
    from tuning.definition.definition import define
    from tuning.planning.plan import make_plan

    return make_plan(define(definition)).to_dict()


def size(run: str) -> int:
    """Return the bytes of all files in a run's directory; 0 where there is none."""
    from tuning.storage.run_directory import RunDirectory

    return RunDirectory(run).size()


def cluster_slots(address: str) -> int:
    """Return the CPUs of the nodes of a Ray cluster that are alive; 0 where none answers."""
    from tuning.definition.cpus import cluster_nodes

    return int(sum(node.get("CPU", 0) for node in cluster_nodes(address)))


def main() -> None:
    ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    for kind, most in ((resource.RLIMIT_DATA, int(sys.argv[1])), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))
    folder = os.getcwd()
    with open(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what models print is no answer
        while select.select([0], [], [], IDLE_S)[0] and (line := sys.stdin.buffer.readline()):
            answers.write(f"{json.dumps(answer(json.loads(line)))}\n")
            answers.flush()
            os.chdir(folder)


if __name__ == "__main__":
    main()
