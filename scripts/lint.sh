#!/usr/bin/env bash
# Formats, warnings, licences, sizes, fresh bindings. Ends with the same summary as the tests.
. "$(dirname "$0")/common.sh"
. scripts/count.sh

RESULTS=$ROOT/test-results/lint
mkdir -p "$RESULTS"

need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_packages "for the window" "${PACKAGES_WINDOW[@]}"
need_rust
need_node
npm_ci ui

# No source file over 600 lines: a file that long has more than one job.
short_files() {
    local long
    long=$(git ls-files -co --exclude-standard '*.rs' '*.ts' '*.svelte' '*.css' '*.js' '*.mjs' '*.cpp' '*.h' '*.py' '*.sh' |
        while IFS= read -r file; do [ -f "$file" ] && printf '%s %s\n' "$(wc -l <"$file")" "$file"; done |
        awk '$1 > 600')
    [ -z "$long" ] || { echo "over 600 lines: $long" && return 1; }
}

# The exporters are tests, so this runs just those.
fresh_bindings() {
    local before
    before=$(mktemp -d)
    cp -r ui/src/bindings "$before/"
    cargo test -q --workspace --lib export_bindings && diff -r "$before/bindings" ui/src/bindings
}

licences() {
    command -v cargo-deny >/dev/null || cargo install cargo-deny --locked || return 1
    cargo deny --all-features check bans licenses sources
}

check "rustfmt" cargo fmt --all --check
check "no file over 600 lines" short_files
check "prettier" npm run --silent --prefix ui format:check
check "svelte-check" npm run --silent --prefix ui check
[ -f ui/dist/index.html ] || check "the page, which the desktop embeds" npm run --silent --prefix ui build
check "clippy" cargo clippy --workspace --all-targets -- -D warnings
check "fresh bindings" fresh_bindings
check "licences and sources" licences
check "the packager's lock file" npm ci --dry-run --prefix src-tauri --no-audit --no-fund --loglevel=error

summary
[ "$FAILED" -eq 0 ]
