//! Finds the part of a model that sees images: a file of its own beside it, called `mmproj` by everyone.
//!
//! Invariant: only headers are read. Nothing is found that belongs to a model of another width.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use super::fault::{FileFault, ModelFileError};
use super::projector_shape::ProjectorShape;
use super::read::{Header, Value, read_header};

/// What a file says of the part of a model that sees images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectorInfo {
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// Numbers that it makes of each piece of an image; the width of its model.
    pub width: u64,
    /// What decides how much memory it takes.
    pub shape: ProjectorShape,
}

/// Which file a model sees with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProjectorChoice {
    /// The one beside it that fits; none when there is none.
    #[default]
    Beside,
    /// This one, which has to fit. A path that is not absolute begins at the model's folder.
    File(PathBuf),
    /// None: it sees nothing, and its memory is saved.
    Off,
}

impl ProjectorChoice {
    /// The file for a model of this width.
    pub fn of(&self, model: &Path, width: u64) -> Result<Option<ProjectorInfo>, ModelFileError> {
        match self {
            Self::Beside => Ok(projector_beside(model, width)),
            Self::File(path) => {
                let folder = model.parent().unwrap_or(Path::new(""));
                read_projector(&folder.join(path), width).map(Some)
            }
            Self::Off => Ok(None),
        }
    }
}

/// Reads the header of a file that is to see for a model of this width (0: unknown).
pub fn read_projector(path: &Path, width: u64) -> Result<ProjectorInfo, ModelFileError> {
    let fault = |fault| ModelFileError::new(path, fault);
    let header = read_header(path).map_err(fault)?;
    let info = describe(path, &header).map_err(fault)?;
    if width != 0 && info.width != 0 && info.width != width {
        let text = format!("it sees for models of the width {}, and this one has {width}", info.width);
        return Err(fault(FileFault::Unsuitable(text)));
    }
    Ok(info)
}

/// The file beside a model that fits it best.
pub fn projector_beside(model: &Path, width: u64) -> Option<ProjectorInfo> {
    projectors_beside(model, width).into_iter().next()
}

/// The files beside a model that fit it: those that name no model, or the same as this one. First the one that says most
/// of the model, of several such the larger one: it is more exact.
pub fn projectors_beside(model: &Path, width: u64) -> Vec<ProjectorInfo> {
    let words = words_of(model);
    let entries = model.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let paths = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let named = paths.filter(|path| {
        let name =
            path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        name.contains("mmproj") && name.ends_with(".gguf") && path != model
    });
    let alike = named.filter(|path| words_of(path).iter().all(|word| words.contains(word)));
    let mut fitting: Vec<ProjectorInfo> =
        alike.filter_map(|path| read_projector(&path, width).ok()).collect();
    fitting.sort_by_key(|info| (Reverse((words_of(&info.path).len(), info.file_bytes)), info.path.clone()));
    fitting
}

fn describe(path: &Path, header: &Header) -> Result<ProjectorInfo, FileFault> {
    let sees = matches!(header.metadata.get("clip.has_vision_encoder"), Some(Value::Bool(true)));
    if header.str("general.architecture") != Some("clip") || !sees {
        return Err(FileFault::Unsuitable("it is not the part of a model that sees images".to_owned()));
    }
    let width = width_of(header);
    let shape = ProjectorShape::of(header, kind_of(header), width);
    Ok(ProjectorInfo { path: path.to_owned(), file_bytes: header.file_bytes, width, shape })
}

fn kind_of(header: &Header) -> &str {
    let kind = header.str("clip.projector_type").or_else(|| header.str("clip.vision.projector_type"));
    kind.unwrap_or_default()
}

/// Numbers per piece; 0 when it cannot be told. Older files have the width of another model under `projection_dim`: for
/// those the last layer says it.
fn width_of(header: &Header) -> u64 {
    let last =
        |name: &str| header.tensors.iter().find(|tensor| tensor.name == name).map(|found| found.shape[0]);
    match kind_of(header) {
        "mlp" => last("mm.3.bias").or_else(|| last("mm.2.bias")).unwrap_or(0),
        "qwen2vl_merger" | "qwen2.5vl_merger" => last("mm.2.bias").unwrap_or(0),
        "gemma3" => last("mm.input_projection.weight").unwrap_or(0),
        "ldp" | "ldpv2" | "resampler" | "adapter" => 0,
        _ => {
            let said = header.int("clip.vision.projection_dim");
            said.and_then(|width| u64::try_from(width).ok()).unwrap_or(0)
        }
    }
}

/// The words of a file's name that say which model it is; names of projectors have others beside.
fn words_of(path: &Path) -> Vec<String> {
    const OTHERS: [&str; 10] =
        ["mmproj", "model", "f16", "f32", "bf16", "q8", "0", "vision", "encoder", "fp16"];
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let words = stem.split(['-', '_', '.', ' ']).filter(|word| !word.is_empty() && !OTHERS.contains(word));
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use lectern_test_gguf::Family;

    use super::*;

    #[test]
    fn a_projector_belongs_to_the_model_whose_name_and_width_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, width: u32| {
            std::fs::write(folder.path().join(name), Family::Gemma.projector(1, width).bytes()).unwrap();
        };
        let found = |model: &str| {
            let found = projector_beside(&folder.path().join(model), 64)?;
            Some(found.path.file_name()?.to_string_lossy().into_owned())
        };
        put("mmproj-Qwen2.5-VL-7B-Instruct-f16.gguf", 64);
        let own = Some("mmproj-Qwen2.5-VL-7B-Instruct-f16.gguf".to_owned());
        assert_eq!(found("Qwen2.5-VL-7B-Instruct-Q4_K_M.gguf"), own);
        assert_eq!(found("Qwen2.5-7B-Instruct-Q4_K_M.gguf"), None, "a model of text of the same family");
        put("mmproj-F16.gguf", 128);
        assert_eq!(found("gemma-3-4b-it-Q4_0.gguf"), None, "of another width");
        put("mmproj-F16.gguf", 64);
        assert_eq!(found("gemma-3-4b-it-Q4_0.gguf"), Some("mmproj-F16.gguf".to_owned()));
        assert_eq!(found("Qwen2.5-VL-7B-Instruct-Q4_K_M.gguf"), own, "the one that says more");
        std::fs::write(folder.path().join("mmproj-F32.gguf"), b"GGUF").unwrap();
        assert!(read_projector(&folder.path().join("mmproj-F32.gguf"), 0).is_err());
        assert!(found("gemma-3-4b-it-Q4_0.gguf").is_some());
    }
}
