"""Whose process works on a run, how it is asked to end, and what came of it?"""
