#!/usr/bin/env bash
# Measures what the reuse of an evaluated prompt saves: the second question of a conversation, with and without it.
. "$(dirname "$0")/common.sh"
need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_rust
exec cargo run --release -p lectern-local --example prefix_reuse
