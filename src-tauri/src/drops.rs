//! Model files, images and key files that are dragged into the window.
//!
//! Invariant: the page hears names only. Which files are added stands here, so that a page that was talked into
//! something can't name a file of its own.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lectern_app::view::DropNews;
use tauri::DragDropEvent;
use tauri::ipc::Channel;

/// What was let go of, and the page that hears of it.
#[derive(Default)]
pub struct Drops(Mutex<State>);

#[derive(Default)]
struct State {
    page: Option<Channel<DropNews>>,
    models: Vec<PathBuf>,
    images: Vec<PathBuf>,
    keys: Vec<PathBuf>,
}

impl Drops {
    /// Tells this page from now on; the one before was loaded anew.
    pub fn watch(&self, page: Channel<DropNews>) {
        self.state().page = Some(page);
    }

    /// What the window says of a drag.
    pub fn hear(&self, event: &DragDropEvent) {
        let mut state = self.state();
        match event {
            DragDropEvent::Enter { paths, .. } => state.tell(news_of(paths, Stage::Over)),
            DragDropEvent::Drop { paths, .. } => {
                state.models = paths.iter().filter(|path| is_model(path)).cloned().collect();
                state.images = paths.iter().filter(|path| is_image(path)).cloned().collect();
                state.keys = paths.iter().filter(|path| is_key(path)).cloned().collect();
                state.tell(news_of(paths, Stage::Dropped));
            }
            DragDropEvent::Leave => state.tell(DropNews::Left),
            // It comes with each movement of the pointer.
            _ => {}
        }
    }

    /// The model files that were let go of last; each drop is taken once.
    pub fn take(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.state().models)
    }

    /// The same for images and documents.
    pub fn take_images(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.state().images)
    }

    /// The file that was let go of last and may be a service account's key; none where there are several.
    pub fn take_key(&self) -> Option<PathBuf> {
        match <[PathBuf; 1]>::try_from(std::mem::take(&mut self.state().keys)) {
            Ok([only]) => Some(only),
            Err(_) => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A std mutex: nothing awaits while it is held, and nothing in here can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self, news: DropNews) {
        // A page that no longer listens is forgotten; the next one watches anew.
        if self.page.as_ref().is_some_and(|page| page.send(news).is_err()) {
            self.page = None;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Over,
    Dropped,
}

fn news_of(paths: &[PathBuf], stage: Stage) -> DropNews {
    let names = |wanted: fn(&Path) -> bool| -> Vec<String> {
        paths.iter().filter(|path| wanted(path)).map(|path| name_of(path)).collect()
    };
    let (models, images, keys) = (names(is_model), names(is_image), names(is_key));
    let others = u32::try_from(paths.len() - models.len() - images.len() - keys.len()).unwrap_or(u32::MAX);
    match stage {
        Stage::Over => DropNews::Over { models, images, keys, others },
        Stage::Dropped => DropNews::Dropped { models, images, keys, others },
    }
}

/// By the ending only; what a file really is, is found out when it is added.
fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"))
}

/// The same for what a message can take along.
fn is_image(path: &Path) -> bool {
    const ENDINGS: [&str; 7] = ["png", "jpg", "jpeg", "webp", "gif", "bmp", "pdf"];
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// The same for the key of a service account, which Google gives as JSON.
fn is_key(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use tauri::PhysicalPosition;

    use super::*;

    fn dropped(paths: &[&str]) -> DragDropEvent {
        let paths = paths.iter().map(PathBuf::from).collect();
        DragDropEvent::Drop { paths, position: PhysicalPosition::new(1.0, 1.0) }
    }

    #[test]
    fn only_model_files_are_kept_and_only_once() {
        let drops = Drops::default();
        drops.hear(&dropped(&["/a/tiny.GGUF", "/a/cat.JPG", "/a/notes.md", "/a/gguf"]));
        assert_eq!(drops.take_images(), [PathBuf::from("/a/cat.JPG")]);
        assert!(drops.take_images().is_empty());
        assert_eq!(drops.take(), [PathBuf::from("/a/tiny.GGUF")]);
        assert!(drops.take().is_empty());
    }

    #[test]
    fn of_several_key_files_none_is_taken() {
        let drops = Drops::default();
        drops.hear(&dropped(&["/a/key.json"]));
        assert_eq!(drops.take_key(), Some(PathBuf::from("/a/key.json")));
        assert_eq!(drops.take_key(), None);
        drops.hear(&dropped(&["/a/key.json", "/a/other.JSON"]));
        assert_eq!(drops.take_key(), None);
    }

    #[test]
    fn what_was_not_let_go_of_is_not_kept() {
        let drops = Drops::default();
        let paths = vec![PathBuf::from("/a/tiny.gguf")];
        drops.hear(&DragDropEvent::Enter { paths, position: PhysicalPosition::new(1.0, 1.0) });
        drops.hear(&DragDropEvent::Leave);
        assert!(drops.take().is_empty());
    }

    #[test]
    fn the_page_hears_names_without_their_folders() {
        let paths =
            ["/home/ada/private/tiny.gguf", "/home/ada/cat.png", "/home/ada/key.json", "/home/ada/note.md"];
        let (models, images) = (vec!["tiny.gguf".to_owned()], vec!["cat.png".to_owned()]);
        let news = news_of(&paths.map(PathBuf::from), Stage::Over);
        assert_eq!(news, DropNews::Over { models, images, keys: vec!["key.json".to_owned()], others: 1 });
    }
}
