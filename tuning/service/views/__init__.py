"""A run's tables for pages: written once by a child process, and mapped into the server's memory, not read."""
