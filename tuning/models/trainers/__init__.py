"""Objectives that give back a trainer of Ray Train (V2): several processes train each trial."""
