#!/bin/sh
# Fails if generating the Python of the contract again would change what is committed.
set -eu
committed=clients/python/ordergateway/v1
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
mkdir -p "$new/ordergateway/v1"
sh scripts/generate.sh "$new" > /dev/null
diff -r -u --exclude=__pycache__ "$committed" "$new/ordergateway/v1" || {
    echo "$committed is not what proto/ says: run 'make generate' and commit the result" >&2
    exit 1
}
