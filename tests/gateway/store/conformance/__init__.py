"""What every engine must show (docs/architecture.md#growing): the same tests for each line of engines.py."""
