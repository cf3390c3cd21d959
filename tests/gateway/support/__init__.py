"""What the gateway's suites share: a clock that stands still, the use cases, a gateway in process or as a process."""
