"""Portfolios: a few complete configurations that complement each other, with which every study begins.

A file per task is shipped here; `sources` finds the one that a definition asks for, `learning` makes one from results.
"""
