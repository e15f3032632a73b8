"""The service: who may run what, when, and who is told?

A server takes definitions over HTTP, queues them for teams, and starts `tuning run` as processes of their own, which
outlive it. What a run has found is read from its run directory: the service is no second engine.
"""
