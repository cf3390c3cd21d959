"""`python -m worker` is `order-worker`."""

from worker.cli import main

if __name__ == "__main__":
    main()
