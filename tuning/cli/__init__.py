"""Commands, options, output and exit codes."""
