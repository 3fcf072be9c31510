#!/usr/bin/env bash
# Feeds the readers of remote models with garbage: each target for FUZZ_SECONDS (600), or the first argument. Needs a nightly compiler, which is
# installed where rustup is, and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")/../crates/cloud"

seconds=${1:-${FUZZ_SECONDS:-600}}
if ! cargo +nightly --version >/dev/null 2>&1; then
  command -v rustup >/dev/null || { echo "fuzz: a nightly compiler is needed (rustup toolchain install nightly)" >&2; exit 1; }
  rustup toolchain install nightly --profile minimal
fi
cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked

# The recorded answers are the first corpus; what is found meanwhile stays out of them.
for target in gemini openai schema; do
  corpus=$(mktemp -d)
  find tests/recorded -type f \( -name '*.txt' -o -name '*.json' -o -name '*.html' \) | while read -r file; do
    cp "$file" "$corpus/$(echo "$file" | tr / -)"
  done
  echo "fuzz: $target for $seconds s"
  cargo +nightly fuzz run "$target" "$corpus" -- -max_total_time="$seconds"
  rm -rf "$corpus"
done
