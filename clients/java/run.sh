#!/bin/sh
# Runs a class of what Maven has compiled: sh run.sh example.Upstream
set -eu
exec java -XX:TieredStopAtLevel=1 -cp "target/classes:$(cat target/classpath)" "$@"
