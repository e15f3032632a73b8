"""The pages: rendered here, usable without a script."""
