#!/usr/bin/env bash
# Formats everything that `make lint` checks.
. "$(dirname "$0")/common.sh"
need_rust
need_node
npm_ci ui
cargo fmt --all
npm run --silent --prefix ui format
