#!/bin/sh
# Go's own checks of what is written by hand. gofmt only tells what is not in its form, and succeeds all the same.
set -eu
go vet ./...
unformed=$(gofmt -l checks cmd lease orders overconnect overgrpc sandbox)
[ -z "$unformed" ] || { printf 'not as gofmt writes it:\n%s\n' "$unformed"; exit 1; }
