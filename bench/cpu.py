"""What processes use of the processor."""

import time

import psutil


def cpu_seconds(root: psutil.Process) -> float:
    """Processor time that a process and all below it have used until now, those that have ended included."""
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue  # it has ended since: then it is among those that its parent has waited for
        total += used.user + used.system + used.children_user + used.children_system
    return total


def share_of_a_core(root: psutil.Process, seconds: float) -> float:
    """Per cent of one core that a process and all below it use, over so many seconds."""
    before, begun = cpu_seconds(root), time.perf_counter()
    time.sleep(seconds)
    return (cpu_seconds(root) - before) / (time.perf_counter() - begun) * 100
