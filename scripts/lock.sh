#!/bin/sh
# Pins the dependencies of pyproject.toml, with hashes and for every supported Python, in requirements/. Needs uv, which
# is no dependency of the project: any recent one will do. No index host is written into the files.
# Arguments go to uv, for example: sh scripts/lock.sh --upgrade-package grpcio
set -eu
command -v uv > /dev/null || { echo "lock: uv is needed and was not found; install it with: pipx install uv" >&2; exit 1; }
compile() {
    # The project's own client is installed from this tree.
    uv pip compile --no-emit-package ordergateway-client --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
        --quiet --no-header "$@"
}
compile pyproject.toml --output-file requirements/runtime.txt "$@"
for extra in browser notify otel postgres; do
    compile pyproject.toml --extra "$extra" --constraint requirements/runtime.txt --output-file "requirements/$extra.txt" "$@"
done
compile pyproject.toml --all-extras --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt "$@"
compile --group pyproject.toml:build --constraint requirements/dev.txt --output-file requirements/build.txt "$@"
compile --group pyproject.toml:peers --constraint requirements/dev.txt --output-file requirements/peers.txt "$@"
compile --group pyproject.toml:profile --output-file requirements/profile.txt "$@"
compile --group pyproject.toml:fuzz --output-file requirements/fuzz.txt "$@"
