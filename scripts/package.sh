#!/usr/bin/env bash
# Builds the .deb and the .rpm, optimised, and asks the packaged program a question. They hold the window, the command
# `lectern`, and llama.cpp with code for every kind of this processor, of which the best is chosen at the start.
. "$(dirname "$0")/common.sh"
need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_packages "for the window" "${PACKAGES_WINDOW[@]}"
need_rust
need_node
npm_ci src-tauri
build_ui
STAGE=$TARGET/package

say "Building (the first time takes many minutes: llama.cpp is compiled for every kind of this processor)"
build_fast --bin lectern --bin lectern-desktop
mkdir -p "$STAGE"
node scripts/bundle.mjs "$TARGET/release/lectern" "$TARGET/lib/lectern" >"$STAGE/bundle.json"

say "Making the packages"
(cd src-tauri && npx tauri bundle --ci --bundles deb,rpm --config "$STAGE/bundle.json")

say "Unpacking the .deb and asking the packaged program a question"
deb=$(ls -t "$TARGET"/release/bundle/deb/*.deb | head -n 1)
rm -rf "$STAGE/unpacked"
mkdir -p "$STAGE/unpacked/home"
(cd "$STAGE/unpacked" && ar p "$deb" data.tar.gz | tar -xz)
LECTERN_HOME=$STAGE/unpacked/home "$STAGE/unpacked/usr/bin/lectern" ask "What does error E7 on the heat pump mean?" ||
    stop "the packaged program does not answer"
LECTERN_HOME=$STAGE/unpacked/home "$STAGE/unpacked/usr/bin/lectern" models hardware || true
rm -rf "$STAGE/unpacked"
say "Done:"
ls -lh "$TARGET"/release/bundle/deb/*.deb "$TARGET"/release/bundle/rpm/*.rpm
