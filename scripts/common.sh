# Shared by the scripts beside it: where things are, what the machine needs, how it is said.
# shellcheck shell=bash
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
# A machine that builds once and goes away gains nothing from incremental compilation, which takes gigabytes.
if [ -n "${CI:-}" ]; then
    export CARGO_INCREMENTAL=0
fi

RUST_NEEDED=1.95
NODE_NEEDED=20.19

# What measures and what is shipped is built with these: llama.cpp chooses its code for the processor when it starts.
# The same in the scripts that need it, so that llama.cpp is compiled once for them.
# shellcheck disable=SC2034
FAST=(--features lectern-local/portable-cpu,lectern-cli/portable-cpu,lectern-desktop/portable-cpu)

say() { printf '\n==> %s\n' "$*"; }
stop() {
    printf '\nStopped: %s\n' "$*" >&2
    exit 1
}

# Debian and Ubuntu packages, by what they are for.
PACKAGES_CORE=(build-essential cmake pkg-config libclang-dev ca-certificates git)
PACKAGES_WINDOW=(libwebkit2gtk-4.1-dev librsvg2-dev libssl-dev libgtk-3-dev libsoup-3.0-dev libxdo-dev)
PACKAGES_TEST=(python3-venv webkit2gtk-driver xvfb dbus-x11 gnome-keyring libglib2.0-bin chromium imagemagick
    fonts-noto-core fonts-noto-color-emoji fonts-noto-cjk)

# need_packages REASON PACKAGE...: installs those that are missing, after saying which and why.
need_packages() {
    local reason=$1 missing=() package
    shift
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        other_system "$reason"
        return
    fi
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    say "Installing system packages ($reason): ${missing[*]}"
    as_root apt-get update -qq || echo "The package lists could not be refreshed; trying with the ones that are here."
    leave_out_unknown
    [ ${#missing[@]} -eq 0 ] && return
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        stop "apt-get could not install them. Install them by hand and start again: ${missing[*]}"
}

# Ubuntu has no chromium package, for one. Tests that need what is left out say so and are skipped.
leave_out_unknown() {
    local package known=()
    for package in "${missing[@]}"; do
        if [ -n "$(apt-cache policy "$package" | sed -n 's/^  Candidate: //p' | grep -v '(none)')" ]; then
            known+=("$package")
        else
            echo "This system has no package $package; going on without it."
        fi
    done
    missing=("${known[@]}")
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        stop "installing packages needs root, and there is no sudo. As root, run: $*"
    fi
}

# Where there is no apt we don't guess at package names; docs/development.md has them.
other_system() {
    if [ -z "${SAID_OTHER_SYSTEM:-}" ]; then
        echo "No apt here, so nothing is installed ($1). What is needed on $(uname -s) stands in docs/development.md."
        SAID_OTHER_SYSTEM=yes
    fi
}

# at_least VERSION NEEDED
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

need_rust() {
    if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
        export PATH="$HOME/.cargo/bin:$PATH"
    fi
    command -v cargo >/dev/null || install_rust ||
        stop "Rust is missing and could not be installed. Install it from https://rustup.rs and start again"
    local version
    version=$(rustc --version | cut -d ' ' -f 2)
    at_least "$version" "$RUST_NEEDED" ||
        stop "Rust $version is too old; $RUST_NEEDED or later is needed. Run: rustup update stable"
}

# Debian's own Rust is older than what is needed here, so it comes from the Rust project, for this user only.
install_rust() {
    command -v curl >/dev/null || need_packages "to fetch the Rust compiler" curl
    command -v curl >/dev/null || return 1
    say "Installing the Rust compiler from https://rustup.rs into $HOME/.cargo (rustup self uninstall removes it)"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --no-modify-path || return 1
    export PATH="$HOME/.cargo/bin:$PATH"
}

# Debian 12 has Node 18; a newer one comes from the npm registry, into the target folder.
need_node() {
    local own="$TARGET/tools/node/node_modules/.bin"
    [ -x "$own/node" ] && export PATH="$own:$PATH"
    command -v npm >/dev/null || need_packages "the window's web part" nodejs npm
    command -v npm >/dev/null || stop "Node.js $NODE_NEEDED or later with npm is missing. Install it from https://nodejs.org"
    local version
    version=$(node --version | tr -d v)
    at_least "$version" "$NODE_NEEDED" && return
    say "Node.js $version is too old ($NODE_NEEDED is needed); fetching Node.js 22 into $TARGET/tools"
    npm install --silent --no-audit --no-fund --prefix "$TARGET/tools/node" node@22
    export PATH="$own:$PATH"
    at_least "$(node --version | tr -d v)" "$NODE_NEEDED" || stop "Node.js could not be fetched; install $NODE_NEEDED or later"
}

# npm_ci FOLDER: installs what the lock file names, unless that is done already.
npm_ci() {
    local stamp="$1/node_modules/.lectern-lock"
    cmp -s "$1/package-lock.json" "$stamp" && return
    say "Installing npm packages of $1"
    npm ci --prefix "$1" --no-audit --no-fund --loglevel=error
    cp "$1/package-lock.json" "$stamp"
}

# python_servers: other people's MCP servers in Python, as tests/clients/requirements.txt pins them.
python_servers() {
    local place="$TARGET/tools/servers" wanted=tests/clients/requirements.txt
    cmp -s "$wanted" "$place/.lectern-requirements" && return
    say "Installing the MCP servers of $wanted"
    python3 -m venv "$place" &&
        "$place/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted" &&
        cp "$wanted" "$place/.lectern-requirements" ||
        echo "They could not be installed; the tests that need them say so and are skipped."
}

# llama_server: llama.cpp's own server as a wheel of PyPI (34 MB, nothing is compiled), which tests ask as a provider.
llama_server() {
    local place="$TARGET/tools/llama-server" wanted=tests/clients/llama-server.txt
    cmp -s "$wanted" "$place/.lectern-requirements" && return
    say "Installing llama.cpp's server of $wanted"
    python3 -m venv "$place" &&
        "$place/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --requirement "$wanted" &&
        cp "$wanted" "$place/.lectern-requirements" ||
        { rm -rf "$place" && echo "It can't be had for this system; the tests that need it say so and are skipped."; }
}

# build_fast TARGET...: an optimised build for every kind of this processor, with llama.cpp's libraries where its
# executables look for them (crates/local/build.rs and worker/backends.rs name the places).
build_fast() {
    local plan=$TARGET/build.json out
    mkdir -p "$TARGET"
    # llama-cpp-sys-2 links its libraries there and panics at a link of an earlier build that leads nowhere.
    find "$TARGET/release" -maxdepth 2 -name 'lib*.so' -xtype l -delete 2>/dev/null || true
    # Nothing is downloaded by llama.cpp here, so its libraries need not ask for OpenSSL.
    CMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON \
        cargo build --release --workspace "${FAST[@]}" --message-format=json-render-diagnostics "$@" >"$plan"
    out=$(sed -n '/"build-script-executed"/{/llama-cpp-sys-2/s/.*"out_dir":"\([^"]*\)".*/\1/p}' "$plan" | tail -n 1)
    rm "$plan"
    stage_libraries "$out" "$TARGET/lib/lectern"
}

# stage_libraries FROM TO: from the folder that llama.cpp was built in.
stage_libraries() {
    local folder library
    rm -rf "$2"
    mkdir -p "$2/backends"
    # Executables ask for the names with the first number of the version, which are links here.
    for folder in "$1/lib" "$1/lib64" "$1/build/bin" "$1/build/common"; do
        for library in "$folder"/lib*.so.*; do
            case $library in
            *.so.*.* | *'*') continue ;;
            esac
            [ -e "$2/${library##*/}" ] || cp --dereference "$library" "$2/"
        done
    done
    [ -e "$2/libllama.so.0" ] || stop "llama.cpp's libraries were not found in $1"
    cp "$1/backends/"* "$2/backends/"
    strip --strip-unneeded "$2"/*.so* "$2"/backends/*.so
}

build_ui() {
    npm_ci ui
    say "Building the window's page"
    npm run --silent --prefix ui build
}

has_display() {
    case $(uname -s) in
    Linux) [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] ;;
    *) true ;;
    esac
}
