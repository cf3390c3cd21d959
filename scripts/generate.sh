#!/bin/sh
# Writes the Python of the contract (messages, stubs for mypy, gRPC, Connect, services as Protocols) into the folder
# named, default clients/python.
# `google` as Connect's protobuf runtime lets gRPC and Connect share one family of messages.
# Says nothing but how much changed; a file that would stay the same is not touched.
set -eu
out=${1:-clients/python}
bin=$(pwd)/${VENV:-.venv}/bin
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

PATH="$bin:$PATH" "$bin/python" -m grpc_tools.protoc --proto_path=proto \
    --python_out="$new" --mypy_out="$new" --grpc_python_out="$new" --mypy_grpc_out="$new" \
    --connectrpc_out="$new" --connectrpc_opt=protobuf=google \
    proto/ordergateway/v1/*.proto > "$new/log" 2>&1 || { cat "$new/log" >&2; exit 1; }
: > "$new/ordergateway/v1/__init__.py"
PYTHONDONTWRITEBYTECODE=1 "$bin/python" scripts/service_protocols.py "$new" > "$new/services.py"
mv "$new/services.py" "$new/ordergateway/v1/services.py"

changed=0
for file in $(cd "$new" && find ordergateway/v1 -type f); do
    cmp -s "$new/$file" "$out/$file" && continue
    mkdir -p "$(dirname "$out/$file")"
    cp "$new/$file" "$out/$file"
    changed=$((changed + 1))
done
for file in $(cd "$out" && find ordergateway/v1 -type f ! -path '*/__pycache__/*'); do
    [ -e "$new/$file" ] && continue
    rm "$out/$file"
    changed=$((changed + 1))
done
echo "generate: $changed files changed in $out/ordergateway/v1"
