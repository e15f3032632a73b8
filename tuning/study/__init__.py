"""One study in one process: suggest, step, decide, tell."""
