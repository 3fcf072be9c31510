//! Images and documents on their way into a message: taken in when they are chosen, kept until they are sent.
//!
//! Invariant: an id names a file of the one folder and nothing else. What was taken in survives a restart, so that a
//! draft never loses it; what was sent is in the conversation and nowhere else.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lectern_core::{Blob, ModelInfo, Part};
use uuid::Uuid;

use super::Engine;
use crate::durable;
use crate::picture::{self, MOST_BYTES, Picture, PictureFault};
use crate::view::{Enclosure, Enclosures, Problem};

/// Files of one message.
const MOST: usize = 8;
/// What nobody sent for so long, nobody misses.
const KEPT: Duration = Duration::from_secs(60 * 60 * 24 * 30);
const PDF: &str = "application/pdf";

impl Engine {
    /// Takes in an image or a document that a message is to take along: upright, scaled, checked.
    pub async fn enclose(&self, bytes: Vec<u8>, name: Option<String>) -> Result<Enclosure, Problem> {
        let folder = self.0.home.enclosed();
        let done = tokio::task::spawn_blocking(move || take_in(&folder, &bytes, name));
        done.await.unwrap_or_else(|error| Err(Problem::new("defect", format!("read an image: {error}"))))
    }

    /// The same for a file.
    pub async fn enclose_file(&self, path: &Path) -> Result<Enclosure, Problem> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let unreadable = |error: std::io::Error| {
            Problem::new("unreadable_file", format!("read `{}`: {error}", path.display()))
        };
        let length = fs::metadata(path).map_err(unreadable)?.len();
        if usize::try_from(length).is_ok_and(|length| length <= MOST_BYTES) {
            return self.enclose(fs::read(path).map_err(unreadable)?, name).await;
        }
        Err(of_fault(&PictureFault::TooLong(usize::try_from(length).unwrap_or(usize::MAX)), name.as_deref()))
    }

    /// The same for several; one that can't be used does not keep back the others.
    pub async fn enclose_files(&self, paths: &[PathBuf]) -> Enclosures {
        let mut out = Enclosures::default();
        for path in paths {
            match self.enclose_file(path).await {
                Ok(enclosure) => out.taken.push(enclosure),
                Err(problem) => out.refused.push(problem),
            }
        }
        out
    }

    /// Drops what will not be sent. One that is gone already is fine.
    pub fn discard_enclosure(&self, id: &str) {
        if let Ok((path, _)) = place_of(&self.0.home.enclosed(), id) {
            let _ = fs::remove_file(path);
        }
    }

    /// The parts of a message that these become.
    pub(super) fn enclosed_parts(&self, ids: &[String]) -> Result<Vec<Part>, Problem> {
        if ids.len() > MOST {
            let message = format!("{} images are too many for one message; {MOST} are the most", ids.len());
            return Err(
                Problem::new("too_many_images", message).hint("Send the others with the next message.")
            );
        }
        let folder = self.0.home.enclosed();
        let part = |id: &String| {
            let (path, mime) = place_of(&folder, id)?;
            let bytes = fs::read(path).map_err(|_| unknown(id))?;
            Ok(Part::Image(Blob::of(mime, &bytes)))
        };
        ids.iter().map(part).collect()
    }
}

/// Refuses what the model can't see, before anything is stored.
pub(super) fn must_see(parts: &[Part], info: &ModelInfo) -> Result<(), Problem> {
    let mimes = || {
        parts.iter().filter_map(|part| match part {
            Part::Image(blob) => Some(blob.mime.as_str()),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::Resource(_) => None,
        })
    };
    if mimes().any(|mime| mime == PDF) && !(info.vision && info.remote) {
        let message = format!("the model `{}` cannot read PDF documents", info.name);
        return Err(Problem::new("cannot_read_pdf", message)
            .hint("Choose a remote model that reads them, or attach the pages as images."));
    }
    if mimes().next().is_none() || info.vision {
        return Ok(());
    }
    let hint = if lectern_local::SEES_IMAGES {
        "Choose a model that sees, or put the mmproj file that belongs to this one beside it."
    } else {
        "Choose a remote model that sees; this build of Lectern shows no images to local models."
    };
    Err(Problem::new("model_cannot_see", format!("the model `{}` cannot see images", info.name)).hint(hint))
}

fn take_in(folder: &Path, bytes: &[u8], name: Option<String>) -> Result<Enclosure, Problem> {
    let picture = picture::read(bytes).map_err(|fault| of_fault(&fault, name.as_deref()))?;
    let Picture { mime, bytes, width, height, preview } = picture;
    let id = format!("{}.{}", Uuid::now_v7().simple(), ending(mime));
    let kept =
        durable::create_private_folder(folder).and_then(|()| durable::write(&folder.join(&id), &bytes));
    kept.map_err(|error| Problem::new("cannot_keep_image", format!("keep the image: {error}")))?;
    forget_old(folder);
    let preview = preview.map(|bytes| Blob::of("image/jpeg", &bytes));
    Ok(Enclosure { id, name, mime: mime.to_owned(), width, height, preview })
}

fn ending(mime: &str) -> &'static str {
    match mime {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        _ => "pdf",
    }
}

/// The file of an id and its type.
fn place_of(folder: &Path, id: &str) -> Result<(PathBuf, &'static str), Problem> {
    let (number, ending) = id.split_once('.').ok_or_else(|| unknown(id))?;
    let mime = match ending {
        "png" => "image/png",
        "jpg" => "image/jpeg",
        "pdf" => PDF,
        _ => return Err(unknown(id)),
    };
    let number = Uuid::try_parse(number).map_err(|_| unknown(id))?;
    Ok((folder.join(format!("{}.{ending}", number.simple())), mime))
}

fn forget_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let changed = entry.metadata().and_then(|meta| meta.modified()).ok();
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        if age.is_some_and(|age| age > KEPT) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn unknown(id: &str) -> Problem {
    Problem::new("unknown_enclosure", format!("the image `{id}` is not there any more"))
        .hint("Attach it once more.")
}

fn of_fault(fault: &PictureFault, name: Option<&str>) -> Problem {
    let code = match fault {
        PictureFault::Unknown => "not_an_image",
        PictureFault::Damaged(_) => "damaged_image",
        PictureFault::TooManyPixels { .. } | PictureFault::TooLong(_) => "image_too_large",
    };
    let what = name.map_or_else(|| "this".to_owned(), |name| format!("`{name}`"));
    let problem = Problem::new(code, format!("{what} cannot be attached: {fault}"));
    match fault {
        PictureFault::Unknown => problem.hint("Attach a PNG, JPEG, WebP, GIF, BMP or PDF file."),
        PictureFault::Damaged(_) => problem.hint("Open it elsewhere and save it anew."),
        PictureFault::TooManyPixels { .. } | PictureFault::TooLong(_) => {
            problem.hint("Make it smaller first.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_no_other_file() {
        let folder = Path::new("/home");
        let id = format!("{}.png", Uuid::now_v7().simple());
        assert_eq!(place_of(folder, &id).unwrap().0, folder.join(&id));
        for bad in ["", ".", "../a.png", "a.png", "..%2f.png", "018f.jpg", &id.replace("png", "sqlite")] {
            assert_eq!(place_of(folder, bad).unwrap_err().code, "unknown_enclosure", "{bad}");
        }
    }

    #[test]
    fn what_nobody_sent_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let pdf = b"%PDF-1.7";
        let old = take_in(folder.path(), pdf, None).unwrap();
        let file = fs::File::options().write(true).open(folder.path().join(&old.id)).unwrap();
        file.set_modified(SystemTime::now() - KEPT - Duration::from_secs(60)).unwrap();
        let new = take_in(folder.path(), pdf, Some("a.pdf".to_owned())).unwrap();
        assert!(!folder.path().join(&old.id).exists() && folder.path().join(&new.id).exists());
    }

    #[test]
    fn a_model_is_shown_only_what_it_sees() {
        let image = [Part::Image(Blob::of("image/png", b"x"))];
        let pdf = [Part::Image(Blob::of(PDF, b"x"))];
        let info = |vision, remote| ModelInfo {
            id: "m".into(),
            name: "Some Model".to_owned(),
            tool_mode: lectern_core::ToolMode::Native,
            context_length: None,
            vision,
            remote,
        };
        assert!(must_see(&[], &info(false, false)).is_ok());
        assert!(must_see(&image, &info(true, false)).is_ok());
        assert!(must_see(&pdf, &info(true, true)).is_ok());
        let problem = must_see(&image, &info(false, false)).unwrap_err();
        assert!(problem.code == "model_cannot_see" && problem.message.contains("Some Model"));
        assert!(problem.hint.is_some());
        assert_eq!(must_see(&pdf, &info(true, false)).unwrap_err().code, "cannot_read_pdf");
    }
}
