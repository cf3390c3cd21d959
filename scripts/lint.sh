#!/bin/sh
# Every check that needs no running program. All of them run, whatever the first ones say; the exit status is 1 if any
# failed. `sh scripts/lint.sh NAME...` runs only the named ones.
set -u
PATH="$(pwd)/${VENV:-.venv}/bin:$PATH"
export PATH
failed=
output=$(mktemp)
trap 'rm -f "$output"' EXIT

check() { # NAME COMMAND...
    name=$1
    shift
    case " $wanted " in "  " | *" $name "*) ;; *) return ;; esac
    if "$@" > "$output" 2>&1; then
        printf 'ok      %s\n' "$name"
    else
        printf 'FAILED  %s: %s\n' "$name" "$*"
        cat "$output"
        failed="$failed $name"
    fi
}

wanted="$*"
check ruff-check ruff check --quiet .
check ruff-format ruff format --check --diff --quiet .
check mypy mypy
check import-linter lint-imports --no-logo
check buf-lint buf lint
check buf-format buf format --diff --exit-code
check buf-breaking buf breaking --against proto/baseline.binpb
check generated sh scripts/check_generated.sh
check tree python scripts/check_tree.py
check references python scripts/check_references.py
check translations python scripts/translations.py

[ -z "$failed" ] || { printf 'lint: failed:%s\n' "$failed" >&2; exit 1; }
