//! Compiles the C++ shim over llama.cpp's `common` library.
//!
//! The headers of `common` are not installed by llama-cpp-sys-2, so they are read from the sources it was
//! built from; CMake's cache names that folder.

use std::path::{Path, PathBuf};

const SOURCES: [&str; 5] =
    ["shim/ahead.cpp", "shim/chat.cpp", "shim/sampler.cpp", "shim/shim.h", "shim/format.hpp"];

fn main() {
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    println!("cargo:rerun-if-env-changed=DEP_LLAMA_ROOT");
    let root = std::env::var("DEP_LLAMA_ROOT").expect("llama-cpp-sys-2 says where it was built");
    let llama = sources_of(Path::new(&root));
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("shim/ahead.cpp")
        .file("shim/chat.cpp")
        .file("shim/sampler.cpp")
        .include(llama.join("common"))
        .include(llama.join("include"))
        .include(llama.join("ggml/include"))
        .include(llama.join("vendor"))
        .warnings(false)
        .compile("lectern_shim");
    warn_of_slow_builds();
    link_to_neighbours();
}

/// ggml leaves AVX2 out when a build is to be reproducible; only a build with all kinds of code is not slower then.
fn warn_of_slow_builds() {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let portable = std::env::var_os("CARGO_FEATURE_PORTABLE_CPU").is_some();
    if std::env::var_os("SOURCE_DATE_EPOCH").is_some() && !portable {
        println!(
            "cargo:warning=SOURCE_DATE_EPOCH is set: llama.cpp is built without AVX2. Unset it, or use portable-cpu."
        );
    }
}

/// A build with libraries finds them where they are installed, and beside the executable. An old-fashioned RPATH, for
/// it holds for the libraries that those libraries need, too; a RUNPATH does not.
fn link_to_neighbours() {
    let on_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if std::env::var_os("CARGO_FEATURE_PORTABLE_CPU").is_some() && on_linux {
        println!("cargo:rustc-link-arg-bins=-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib/lectern:$ORIGIN");
        println!(
            "cargo:rustc-link-arg-benches=-Wl,--disable-new-dtags,-rpath,$ORIGIN/../../lib/lectern:$ORIGIN"
        );
    }
}

/// The folder of llama.cpp's sources, from the CMake cache of the build.
fn sources_of(root: &Path) -> PathBuf {
    let cache = root.join("build").join("CMakeCache.txt");
    let text =
        std::fs::read_to_string(&cache).unwrap_or_else(|error| panic!("read {}: {error}", cache.display()));
    let folder = text
        .lines()
        .find_map(|line| line.strip_prefix("CMAKE_HOME_DIRECTORY:INTERNAL="))
        .unwrap_or_else(|| panic!("{} names no source folder", cache.display()));
    PathBuf::from(folder)
}
