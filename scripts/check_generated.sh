#!/bin/sh
# Fails if generating the Python of the contract again would change what is committed in generated/.
set -eu
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
sh scripts/generate.sh "$new" > /dev/null
diff -r -u --exclude=__pycache__ generated "$new" || {
    echo "generated/ is not what proto/ says: run 'make generate' and commit the result" >&2
    exit 1
}
