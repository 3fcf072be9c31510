#!/usr/bin/env bash
# Measures the local models beside llama-cpp-python, what the reuse of an evaluated prompt saves, and what the MCP host
# costs. LECTERN_BENCH_SIZE=small takes a toy model, LECTERN_BENCH_ROUNDS says how often each figure is measured.
. "$(dirname "$0")/common.sh"
need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_packages "for the peer, llama-cpp-python" python3-venv python3-dev
need_rust
need_node

PEER=$TARGET/tools/peer
PEER_VERSION=0.3.36

# The peer as its users get it: from its source, compiled for this machine. Once; some minutes.
install_peer() {
    [ "$(cat "$PEER/.lectern-version" 2>/dev/null)" = "$PEER_VERSION" ] && return
    say "Installing llama-cpp-python $PEER_VERSION from PyPI into $PEER (it is compiled here, which takes minutes)"
    rm -rf "$PEER"
    # A build that is to be reproducible would compile it for no machine in particular.
    python3 -m venv "$PEER" &&
        env -u SOURCE_DATE_EPOCH CMAKE_BUILD_PARALLEL_LEVEL="$(nproc)" "$PEER/bin/pip" install --quiet \
            --disable-pip-version-check --no-binary llama-cpp-python "llama-cpp-python==$PEER_VERSION" &&
        echo "$PEER_VERSION" >"$PEER/.lectern-version"
}

peer=()
if install_peer; then
    peer=(--peer "$PEER/bin/python" --script "$ROOT/scripts/peer.py")
else
    echo "llama-cpp-python cannot be had here, so only our side is measured."
fi

say "Building (the first time takes some minutes: llama.cpp is compiled for every kind of this processor)"
build_fast --bin lectern --bin lectern-local-worker
cargo bench --no-run --quiet --workspace "${FAST[@]}" --bench peer --bench host
say "What a saved prompt brings: a question of three steps with the starter model"
node scripts/bench.mjs "$TARGET/release/lectern"
say "The MCP host: a hundred servers, and a call against a bare rmcp client"
cargo bench --quiet --workspace "${FAST[@]}" --bench host
say "Local models: the same file here and in llama-cpp-python"
exec cargo bench --quiet --workspace "${FAST[@]}" --bench peer -- --models "$TARGET/bench" "${peer[@]}"
