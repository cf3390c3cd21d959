"""`python -m worker` is `order-worker`."""

from worker.cli.app import main

if __name__ == "__main__":
    main()
