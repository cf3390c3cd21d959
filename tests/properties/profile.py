"""How long the machines run. Nothing is random and nothing is kept, so that each run is the same everywhere."""

from hypothesis import HealthCheck, settings

QUICK = settings(
    max_examples=30,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
SERVED = settings(QUICK, max_examples=3, stateful_step_count=30)
DEEP = settings(QUICK, max_examples=120, stateful_step_count=60)
SERVED_DEEP = settings(QUICK, max_examples=10, stateful_step_count=50)
