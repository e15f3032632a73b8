"""The routes, each file one kind of thing that is asked for."""
