#!/bin/sh
# Writes the Python of the contract in ../../proto into ordergateway/v1. What is committed there `make generate` made.
set -eu
python -m grpc_tools.protoc --proto_path=../../proto --python_out=. --grpc_python_out=. \
    --mypy_out=quiet:. --mypy_grpc_out=quiet:. ../../proto/ordergateway/v1/*.proto
