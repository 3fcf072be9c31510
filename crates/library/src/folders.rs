//! Folders of model files: what is in them, and word when that changes.
//!
//! Invariant: read-only. Depth and number of files are bounded, so that a folder that was chosen by mistake ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use serde::Deserialize;
use tokio::sync::mpsc;
use walkdir::WalkDir;

use crate::name::{is_gguf, is_projector, split_file, split_name};
use crate::record::record_path;

/// Folders below a folder that are looked into.
const DEPTH: usize = 6;
/// Files that are looked at.
const MOST: usize = 100_000;
/// Many changes come at once; this long after the last one they are told.
const SETTLED: Duration = Duration::from_millis(800);

/// The models in a folder: of a split model the first file, nothing that is still on its way, no projectors.
pub fn models_in(folder: &Path) -> Vec<PathBuf> {
    let hidden =
        |entry: &walkdir::DirEntry| entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.');
    // The cache of Hugging Face's programs has links to its files; folders are not followed.
    let walk = WalkDir::new(folder).max_depth(DEPTH).sort_by_file_name();
    let entries = walk.into_iter().filter_entry(|entry| !hidden(entry)).take(MOST).flatten();
    let mut models: BTreeMap<PathBuf, ()> = BTreeMap::new();
    for entry in entries.filter(|entry| !entry.file_type().is_dir()) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy());
        if !is_gguf(&name) || is_projector(&name) || !path.is_file() {
            continue;
        }
        let first = match split_name(&name) {
            Some(split) => path.with_file_name(split_file(split.prefix, 1, split.count)),
            None => path.to_owned(),
        };
        // A model that is still being downloaded is shown there.
        if first.is_file() && !record_path(&first).exists() {
            models.insert(first, ());
        }
    }
    models.into_keys().collect()
}

/// The files that belong to a model, itself first.
pub fn files_of(model: &Path) -> Vec<PathBuf> {
    let name = model.file_name().unwrap_or_default().to_string_lossy();
    match split_name(&name) {
        Some(split) => {
            let file = |number| model.with_file_name(split_file(split.prefix, number, split.count));
            (1..=split.count).map(file).filter(|file| file.exists()).collect()
        }
        None => vec![model.to_owned()],
    }
}

/// Ends the watch when it is dropped.
pub struct Watch {
    _watcher: RecommendedWatcher,
}

/// Watches folders. What comes out of the receiver says only that something changed; a folder that is not there is
/// left out.
pub fn watch(folders: &[PathBuf]) -> notify::Result<(Watch, mpsc::Receiver<()>)> {
    let (raw, mut changes) = mpsc::unbounded_channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading a model is no change of its folder, and a download tells of itself.
        let told = |event: notify::Event| {
            !event.kind.is_access() && !event.paths.iter().all(|path| is_of_download(path))
        };
        if event.is_ok_and(told) {
            let _ = raw.send(());
        }
    })?;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        if let Err(error) = watcher.watch(folder, RecursiveMode::Recursive) {
            // It is looked at when the list is asked for.
            tracing::warn!(folder = %folder.display(), %error, "a folder of models is not watched");
        }
    }
    let (told, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        while changes.recv().await.is_some() {
            while let Ok(Some(())) = tokio::time::timeout(SETTLED, changes.recv()).await {}
            // One word that waits to be heard is enough.
            if told.try_send(()).is_err() && told.is_closed() {
                return;
            }
        }
    });
    Ok((Watch { _watcher: watcher }, receiver))
}

fn is_of_download(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || [".part", ".part.json", ".part.stop"].iter().any(|tail| name.ends_with(tail))
}

/// A folder in which another program keeps models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherProgram {
    /// Which.
    pub program: Program,
    /// Its folder.
    pub folder: PathBuf,
}

/// Programs that keep models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// LM Studio.
    LmStudio,
    /// Jan.
    Jan,
    /// llama.cpp itself.
    LlamaCpp,
    /// Hugging Face's own programs.
    HuggingFace,
    /// Ollama.
    Ollama,
}

/// The folders of other programs that are there, below a user's home.
pub fn other_programs(home: &Path) -> Vec<OtherProgram> {
    let known: [(Program, &[&str]); 5] = [
        (Program::LmStudio, &[".lmstudio/models", ".cache/lm-studio/models"]),
        (
            Program::Jan,
            &[
                ".local/share/Jan/data/llamacpp/models",
                "Library/Application Support/Jan/data/llamacpp/models",
                "AppData/Roaming/Jan/data/llamacpp/models",
                ".config/Jan/data/llamacpp/models",
                "jan/models",
            ],
        ),
        (Program::LlamaCpp, &[".cache/llama.cpp", "Library/Caches/llama.cpp", "AppData/Local/llama.cpp"]),
        (Program::HuggingFace, &[".cache/huggingface/hub"]),
        (Program::Ollama, &[".ollama/models"]),
    ];
    let there = known.into_iter().flat_map(|(program, places)| {
        places.iter().map(move |place| OtherProgram { program, folder: home.join(place) })
    });
    there.filter(|found| found.folder.is_dir()).collect()
}

/// A model of Ollama: its files have no names of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaModel {
    /// E.g. `qwen3:4b`.
    pub name: String,
    /// The GGUF file.
    pub file: PathBuf,
}

#[derive(Deserialize)]
struct Manifest {
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    #[serde(rename = "mediaType")]
    kind: String,
    digest: String,
}

/// The models in Ollama's folder, by its manifests.
pub fn ollama_models(folder: &Path) -> Vec<OllamaModel> {
    let manifests = folder.join("manifests");
    let walk = WalkDir::new(&manifests).max_depth(DEPTH).sort_by_file_name().into_iter().take(MOST).flatten();
    let mut models = Vec::new();
    for entry in walk.filter(|entry| entry.file_type().is_file()) {
        let Ok(text) = std::fs::read(entry.path()) else { continue };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else { continue };
        let layer =
            manifest.layers.into_iter().find(|layer| layer.kind == "application/vnd.ollama.image.model");
        let digest = layer.and_then(|layer| layer.digest.strip_prefix("sha256:").map(str::to_owned));
        let digest =
            digest.filter(|digest| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(file) = digest.map(|digest| folder.join("blobs").join(format!("sha256-{digest}"))) else {
            continue;
        };
        let parts: Vec<_> = entry.path().iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
        if let ([tag, name], true) = (&parts[..], file.is_file()) {
            models.push(OllamaModel { name: format!("{name}:{tag}"), file });
        }
    }
    models
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn put(folder: &Path, names: &[&str]) {
        for name in names {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "GGUF").unwrap();
        }
    }

    #[test]
    fn a_folder_is_read_as_models() {
        let folder = tempfile::tempdir().unwrap();
        put(
            folder.path(),
            &[
                "b.gguf",
                "sub/deep/a b é.GGUF",
                "s-00001-of-00002.gguf",
                "s-00002-of-00002.gguf",
                "t-00002-of-00002.gguf",
                "mmproj-b.gguf",
                "x.gguf.part",
                ".locks/l.gguf",
                "on-its-way-00001-of-00002.gguf",
                "notes.txt",
            ],
        );
        fs::write(folder.path().join("on-its-way-00001-of-00002.gguf.part.json"), "{}").unwrap();
        fs::create_dir(folder.path().join("folder.gguf")).unwrap();
        let found = models_in(folder.path());
        let names: Vec<_> = found.iter().map(|path| path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(names, ["b.gguf", "s-00001-of-00002.gguf", "sub/deep/a b é.GGUF"].map(Path::new));
        assert_eq!(files_of(&found[1]).len(), 2);
        assert!(models_in(&folder.path().join("nowhere")).is_empty());
    }

    #[tokio::test]
    async fn what_comes_and_goes_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (_watch, mut changes) =
            watch(&[folder.path().to_owned(), folder.path().join("nowhere")]).unwrap();
        for name in ["a.gguf", "sub/b.gguf"] {
            put(folder.path(), &[name]);
            let told = tokio::time::timeout(Duration::from_secs(60), changes.recv()).await;
            assert_eq!(told.expect("no word of it"), Some(()));
        }
    }

    #[test]
    fn ollamas_models_have_names() {
        let folder = tempfile::tempdir().unwrap();
        let digest = "ab".repeat(32);
        put(folder.path(), &[&format!("blobs/sha256-{digest}")]);
        let manifest = format!(
            r#"{{"layers": [{{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:{digest}"}}]}}"#
        );
        let at = folder.path().join("manifests/registry.ollama.ai/library/qwen3");
        fs::create_dir_all(&at).unwrap();
        fs::write(at.join("4b"), manifest).unwrap();
        fs::write(at.join("bad"), r#"{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../x"}]}"#).unwrap();
        let models = ollama_models(folder.path());
        assert_eq!(models.len(), 1);
        assert_eq!(models[0].name, "qwen3:4b");
    }
}
