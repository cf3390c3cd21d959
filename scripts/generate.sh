#!/bin/sh
# Writes the Python of the contract (messages, stubs for mypy, gRPC, Connect) into the folder named, default generated/.
# `google` as Connect's protobuf runtime lets gRPC and Connect share one family of messages.
set -eu
out=${1:-generated}
bin=$(pwd)/.venv/bin
mkdir -p "$out"
rm -rf "$out/ordergateway"
PATH="$bin:$PATH" "$bin/python" -m grpc_tools.protoc --proto_path=proto \
    --python_out="$out" --mypy_out="$out" --grpc_python_out="$out" --mypy_grpc_out="$out" \
    --connectrpc_out="$out" --connectrpc_opt=protobuf=google \
    proto/ordergateway/v1/*.proto
for package in "$out/ordergateway" "$out/ordergateway/v1"; do : > "$package/__init__.py"; : > "$package/py.typed"; done
rm "$out/ordergateway/v1/py.typed"
