"""Which process works on a run, how is it asked to end, and what came of it?"""
