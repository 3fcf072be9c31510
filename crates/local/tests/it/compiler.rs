//! What the C++ compiler makes of what llama.cpp tells a processor with AMX.

use std::path::Path;
use std::process::Command;

/// A row count in the last eight bytes of the configuration, far behind what the compiler believes to be read.
const ROWS: &str = r"
#include <immintrin.h>
struct tile_config { unsigned char palette, row, reserved[14]; unsigned short columns[16]; unsigned char rows[16]; };
void configure() {
    alignas(64) tile_config tiles = {};
    tiles.palette = 1;
    tiles.rows[7] = 93;
    _tile_loadconfig(&tiles);
}
";

/// `TileConfig` is written on the stack and read by `ldtilecfg` alone: Intel SDM volume 1, section 18.3.
#[test]
fn the_whole_tile_configuration_is_written() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("tiles.cpp");
    std::fs::write(&source, ROWS).unwrap();
    // Cargo's settings name the folder of the header for every build; here as an absolute path, like there.
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("compiler");
    let built = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()))
        .args(["-std=c++17", "-O2", "-mamx-tile", "-S", "-o", "-"])
        .arg(&source)
        .env("CPLUS_INCLUDE_PATH", &headers)
        .output()
        .unwrap();
    let assembly = String::from_utf8_lossy(&built.stdout);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(assembly.contains("ldtilecfg"), "{assembly}");
    assert!(assembly.contains("$93,"), "the row count is lost before it is read:\n{assembly}");
}

/// llama.cpp is compiled with that header, not only this test.
#[test]
fn the_build_finds_the_header() {
    let named = std::env::var_os("CPLUS_INCLUDE_PATH").unwrap();
    let found = std::env::split_paths(&named).any(|folder| folder.join("amxtileintrin.h").is_file());
    assert!(found, "{} has no amxtileintrin.h", named.display());
}
