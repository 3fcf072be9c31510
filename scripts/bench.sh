#!/usr/bin/env bash
# Measures what the reuse of an evaluated prompt saves: each step of a question, and the same conversation
# continued by a process that has evaluated nothing yet. Then what the MCP host costs.
. "$(dirname "$0")/common.sh"
need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_rust
need_node
# llama.cpp is optimised in every profile; the rest of Lectern hardly counts here.
cargo build --workspace --bin lectern
node scripts/bench.mjs "$TARGET/debug/lectern"
say "The MCP host: a hundred servers, and a call against a bare rmcp client"
exec cargo bench --quiet -p lectern-mcp --bench host
