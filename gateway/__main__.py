"""`python -m gateway` is `order-gateway`."""

from gateway.cli import main

if __name__ == "__main__":
    main()
