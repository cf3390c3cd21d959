#!/bin/sh
# Makes the virtual environment (VENV, default .venv) with the pinned, hash-checked dependencies and the project itself.
# `make setup` calls it only when the environment is missing or older than the files that say what belongs into it.
# PYTHON names the interpreter; without it the first of python3, python3.13, 3.12 and 3.11 that will do is taken.
set -eu
venv=${VENV:-.venv}
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# An environment that was finished once is brought up to date in place; an unfinished or broken one is made anew.
if [ ! -e "$venv/ready" ] || ! new_enough "$venv/bin/python"; then
    python=${PYTHON:-}
    if [ -z "$python" ]; then
        for candidate in python3 python3.13 python3.12 python3.11; do
            if new_enough "$candidate"; then python=$candidate; break; fi
        done
    fi
    [ -n "$python" ] ||
        fail "Python 3.11 or newer is needed and none was found; install one, or name it: make setup PYTHON=/path/to/python3"
    new_enough "$python" || fail "'$python' is no Python 3.11 or newer; name one: make setup PYTHON=/path/to/python3"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "'$python' has no venv module; on Debian and Ubuntu: apt-get install python3-venv"
    echo "setup: making $venv with $("$python" --version), about a minute"
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "'$python' could not make $venv (see above)"
fi

pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
rm -f "$venv/ready"
pip install --require-hashes --requirement requirements/dev.txt ||
    fail "the dependencies could not be installed (see above); check the network connection and run it again"
pip install --no-deps --no-build-isolation --editable clients/python --editable . || fail "the project itself could not be installed (see above)"
touch "$venv/ready"
