#!/usr/bin/env bash
# Builds with models that see images (the feature `vision`), which `make test` leaves out, and runs the tests that need it.
. "$(dirname "$0")/common.sh"

need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_rust
say "Local models that see images"
cargo test --package lectern-local --features vision --lib --test it -- images projector cells memory
