"""The places where the studies of a run are worked: this process, forks of it, Ray."""
