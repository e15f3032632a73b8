"""The formats of data: each file here is one, found by its file, see `tuning.data.registry`."""
