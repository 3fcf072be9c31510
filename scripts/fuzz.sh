#!/usr/bin/env bash
# Feeds the readers of remote models with garbage: each target for FUZZ_SECONDS (600), or the first argument. Needs
# cargo-fuzz, and a nightly compiler, which is installed where rustup can have it; the stable one is told to take its
# flags where it can't.
set -euo pipefail
cd "$(dirname "$0")/../crates/cloud"

seconds=${1:-${FUZZ_SECONDS:-600}}
cargo=(cargo +nightly)
if ! "${cargo[@]}" --version >/dev/null 2>&1 && ! rustup toolchain install nightly --profile minimal >/dev/null 2>&1; then
  echo "fuzz: a nightly compiler can't be had; going on with $(rustc --version)"
  cargo=(env RUSTC_BOOTSTRAP=1 cargo)
fi
cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked

# The recorded answers are the first corpus; what is found meanwhile stays out of them.
for target in gemini openai schema; do
  corpus=$(mktemp -d)
  find tests/recorded -type f \( -name '*.txt' -o -name '*.json' -o -name '*.html' \) | while read -r file; do
    cp "$file" "$corpus/$(echo "$file" | tr / -)"
  done
  echo "fuzz: $target for $seconds s"
  "${cargo[@]}" fuzz run "$target" "$corpus" -- -max_total_time="$seconds"
  rm -rf "$corpus"
done
