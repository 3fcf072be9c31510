#!/usr/bin/env bash
# Installs what the tests need, builds once, runs every test, and ends with one line: `N passed, N failed`; what failed
# is named before it.
. "$(dirname "$0")/common.sh"
. scripts/count.sh

RESULTS=$ROOT/test-results
mkdir -p "$RESULTS"
rm -f "$RESULTS"/*.log "$RESULTS"/*.json

need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_packages "for the window" "${PACKAGES_WINDOW[@]}"
need_packages "for tests in a real window and a real browser" "${PACKAGES_TEST[@]}"
need_rust
need_node

say "The window's page: types, tests, build"
npm_ci ui
npm_ci tests/clients
python_servers
llama_server
npm_ci tests/conformance
check "runner: failed tests are named" node --test scripts/failed.test.mjs
check "ui: types and markup" npm run --silent --prefix ui check
vitest "ui: tests" ui-tests npm test --silent --prefix ui
if has_script ui test:browser && command -v chromium >/dev/null; then
    vitest "ui: tests in a browser" ui-browser npm run --silent --prefix ui test:browser
elif has_script ui test:browser; then
    skipped "ui: tests in a browser" "there is no chromium here"
fi
check "ui: build" npm run --silent --prefix ui build

say "Building everything once"
check "build" cargo build --workspace --all-targets
if [ "$LAST" = failed ]; then
    summary
    exit 1
fi

# Material that others made, for the tests of formats and grammars; it stays in target.
if ! crates/local/tests/fetch-chat-templates; then
    skipped "local: the chat templates of real models" "they could not be downloaded"
fi
if ! python3 crates/local/tests/fetch-tool-lists "$TARGET/tools/servers" tests/clients/node_modules target/tool-lists; then
    skipped "local: the tools of real servers" "they could not be asked"
fi

say "Rust tests, with a real window, real servers and the real starter model"
cp -r ui/src/bindings "$RESULTS/bindings-before"
cargo_tests "rust"
check "bindings: the committed TypeScript types are those of the Rust types" \
    diff -r "$RESULTS/bindings-before" ui/src/bindings
rm -rf "$RESULTS/bindings-before"

say "Other people's clients, against the notes server"
for script in tests/clients/vault_*.mjs; do
    client_checks "clients: $(basename "$script" .mjs)" "$(basename "$script")" "$TARGET/debug/lectern" vault
done

say "The built-in model: the sample questions, and questions about another vault"
check "starter: 57 of the 60 sample questions, no invented note" \
    "$TARGET/debug/lectern" debug score --questions samples/questions.jsonl --floor 57
# heldout FILE FLOOR NAME: questions about the vault that it was not made for.
heldout() {
    check "starter: $3" "$TARGET/debug/lectern" debug score \
        --questions "models/starter/heldout/$1.jsonl" --vault models/starter/heldout/vault --floor "$2"
}
heldout questions 36 "36 of the 40 questions about a vault that it was not made for"
heldout followups 20 "20 of the 24 questions that go on from others there"
heldout chains 10 "10 of 16 more, further down and in words that it was not trained on"

say "OpenAI's own clients, against lectern serve"
client_checks "clients: api_openai in Node" api_openai.mjs "$TARGET/debug/lectern"
if "$TARGET/tools/servers/bin/python" -c "import openai" 2>/dev/null; then
    check "clients: api_openai in Python" \
        "$TARGET/tools/servers/bin/python" tests/clients/api_openai.py "$TARGET/debug/lectern"
else
    skipped "clients: api_openai in Python" "the package could not be installed"
fi
if "$TARGET/tools/servers/bin/python" -c "import schemathesis" 2>/dev/null; then
    check "clients: Schemathesis against /openapi.json" \
        "$TARGET/tools/servers/bin/python" tests/clients/api_schemathesis.py "$TARGET/debug/lectern"
else
    skipped "clients: Schemathesis against /openapi.json" "the package could not be installed"
fi

say "The official MCP conformance suite, against lectern mcp probe"
node_checks "conformance: every client scenario that a revision requires" conformance run.mjs "$TARGET/debug/lectern"

summary
[ "$FAILED" -eq 0 ]
