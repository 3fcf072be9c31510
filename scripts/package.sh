#!/usr/bin/env bash
# Builds the .deb and the .rpm, optimised.
. "$(dirname "$0")/common.sh"
need_packages "to compile llama.cpp and Lectern" "${PACKAGES_CORE[@]}"
need_packages "for the window" "${PACKAGES_WINDOW[@]}"
need_rust
need_node
npm_ci src-tauri
build_ui
say "Building the packages"
(cd src-tauri && npx tauri build --ci --bundles deb,rpm)
say "Done:"
ls -lh "$TARGET"/release/bundle/deb/*.deb "$TARGET"/release/bundle/rpm/*.rpm
