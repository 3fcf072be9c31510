//! Lists the files of the sample vault, so that they are part of the executable.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/vault");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut notes = Vec::new();
    collect(&root, &root, &mut notes)?;
    notes.sort();
    let mut out = String::from("[\n");
    for (inside, file) in notes {
        let _ =
            writeln!(out, "    ({inside:?}, include_bytes!({:?}).as_slice()),", file.display().to_string());
    }
    out.push(']');
    let place = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(place.join("sample_vault.rs"), out)
}

/// All files below `folder`, with their path inside `root`, with `/`.
fn collect(root: &Path, folder: &Path, notes: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = fs::canonicalize(entry?.path())?;
        let root = fs::canonicalize(root)?;
        if path.is_dir() {
            collect(&root, &path, notes)?;
        } else if let Ok(inside) = path.strip_prefix(&root) {
            let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
            notes.push((parts.join("/"), path));
        }
    }
    Ok(())
}
