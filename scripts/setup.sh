#!/bin/sh
# Makes .venv with the pinned, hash-checked dependencies and the project itself. Called by `make setup`.
set -eu
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

python=${PYTHON:-}
if [ -z "$python" ]; then
    for candidate in python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$candidate
            break
        fi
    done
fi
[ -n "$python" ] || fail "Python 3.11 or newer is needed and none was found; install it, or name it: make setup PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "'$python' is not a Python 3.11 or newer; name one: make setup PYTHON=/path/to/python3"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "'$python' has no venv module; on Debian and Ubuntu: apt-get install python3-venv"

echo "setup: making .venv with $("$python" --version), about a minute"
rm -rf .venv
"$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt ||
    fail "the dependencies could not be installed (see above); check the network connection and run it again"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . ||
    fail "the project itself could not be installed (see above)"
touch .venv/ready
echo "setup: done"
