#!/usr/bin/env bash
# Installs what is missing, builds, and opens the window with the starter model and the sample vault.
# Without a display: the same first question through the command line.
. "$(dirname "$0")/common.sh"

# One of the questions that the window offers; the sample vault answers it.
QUESTION=${QUESTION:-"What does error E7 on the heat pump mean?"}

need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_rust

if ! has_display; then
    say "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so the question goes through the command line."
    say "Building lectern (the first time takes some minutes: llama.cpp is compiled)"
    # `--workspace` chooses the same features as the tests do, so that llama.cpp is compiled once for both.
    cargo build --workspace --bin lectern
    say "lectern ask \"$QUESTION\""
    exec "$TARGET/debug/lectern" ask "$QUESTION"
fi

need_packages "for the window" "${PACKAGES_WINDOW[@]}"
need_node
build_ui
say "Building Lectern (the first time takes some minutes: llama.cpp and the window's parts are compiled)"
cargo build --workspace --bin lectern-desktop
say "Opening the window. Try: $QUESTION"
exec "$TARGET/debug/lectern-desktop"
