#!/usr/bin/env bash
# Runs every fuzz target of the module for a while: fuzz.sh TIME
set -euo pipefail

for dir in $(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do
	for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/func //'); do
		echo "fuzz: $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 10x "$dir"
	done
done
