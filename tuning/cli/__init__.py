"""Commands, options, output and exit codes."""

from tuning.cli.program import main

__all__ = ["main"]
