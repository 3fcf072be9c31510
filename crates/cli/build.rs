//! Says where a build with llama.cpp's libraries finds them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let on_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if std::env::var_os("CARGO_FEATURE_PORTABLE_CPU").is_some() && on_linux {
        // Where packages install them, and beside the executable. An RPATH, for it holds for the libraries that those
        // libraries need, too; a RUNPATH does not.
        println!("cargo:rustc-link-arg-bins=-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib/lectern:$ORIGIN");
    }
}
