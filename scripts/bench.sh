#!/usr/bin/env bash
# Measures the local models beside llama-cpp-python, what the reuse of an evaluated prompt saves, and what the MCP host
# and the local API cost. LECTERN_BENCH_SIZE=small takes a toy model, LECTERN_BENCH_ROUNDS says how often each figure is measured.
# LECTERN_BENCH_PARTS chooses: replies, prefix, host, api, local (all of them when it is not set).
. "$(dirname "$0")/common.sh"

PARTS=${LECTERN_BENCH_PARTS:-replies prefix host api local}
for part in $PARTS; do
    case $part in replies | prefix | host | api | local) ;; *)
        echo "LECTERN_BENCH_PARTS: there is no part \`$part\` (replies, prefix, host, api, local)" >&2
        exit 2
        ;;
    esac
done
wanted() { [[ " $PARTS " == *" $1 "* ]]; }

need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_rust
if wanted replies; then
    say "Remote models: 10,000 chunks of a reply beside serde_json alone, and 50 MB passing"
    cargo bench --quiet --package lectern-cloud --bench replies
fi
wanted prefix || wanted host || wanted api || wanted local || exit 0
need_node

PEER=$TARGET/tools/peer
PEER_VERSION=0.3.36

# The peer as its users get it: from its source, compiled for this machine. Once; some minutes.
install_peer() {
    [ "$(cat "$PEER/.lectern-version" 2>/dev/null)" = "$PEER_VERSION" ] && return
    say "Installing llama-cpp-python $PEER_VERSION from PyPI into $PEER (it is compiled here, which takes minutes)"
    rm -rf "$PEER"
    # A build that is to be reproducible would compile it for no machine in particular. The header is the one that our
    # own build has, without which neither works on a processor with AMX (docs/building.md).
    python3 -m venv "$PEER" &&
        env -u SOURCE_DATE_EPOCH CMAKE_BUILD_PARALLEL_LEVEL="$(nproc)" \
            CPLUS_INCLUDE_PATH="$ROOT/crates/local/compiler" "$PEER/bin/pip" install --quiet \
            --disable-pip-version-check --no-binary llama-cpp-python "llama-cpp-python==$PEER_VERSION" &&
        echo "$PEER_VERSION" >"$PEER/.lectern-version"
}

peer=()
wanted local && need_packages "for the peer, llama-cpp-python" python3-venv python3-dev
if ! wanted local; then
    :
elif install_peer; then
    peer=(--peer "$PEER/bin/python" --script "$ROOT/scripts/peer.py")
else
    echo "llama-cpp-python cannot be had here, so only our side is measured."
fi

say "Building (the first time takes some minutes: llama.cpp is compiled for every kind of this processor)"
build_fast --bin lectern --bin lectern-local-worker
cargo bench --no-run --quiet --workspace "${FAST[@]}" --bench peer --bench host --bench streams
if wanted prefix; then
    say "What a saved prompt brings: a question of three steps with the starter model"
    node scripts/bench.mjs "$TARGET/release/lectern"
fi
if wanted host; then
    say "The MCP host: a hundred servers, and a call against a bare rmcp client"
    cargo bench --quiet --workspace "${FAST[@]}" --bench host
fi
if wanted api; then
    say "The local API: streams that wait, and frames a second against a bare SSE echo of axum"
    cargo bench --quiet --workspace "${FAST[@]}" --bench streams
fi
wanted local || exit 0
say "Local models: the same file here and in llama-cpp-python"
exec cargo bench --quiet --workspace "${FAST[@]}" --bench peer -- --models "$TARGET/bench" "${peer[@]}"
