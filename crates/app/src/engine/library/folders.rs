//! Folders of model files, watched while the engine runs.
//!
//! Invariant: in folders of others nothing is written, moved or deleted.

use std::path::Path;

use super::super::Engine;
use crate::view::{ModelFolderView, Problem};

impl Engine {
    /// Lectern's own folder, those that are watched, and those of other programs that could be.
    pub fn model_folders(&self) -> Vec<ModelFolderView> {
        Vec::new()
    }

    /// Watches a folder: its models are on the list from now on.
    pub async fn add_model_folder(&self, path: &Path) -> Result<ModelFolderView, Problem> {
        Err(Problem::new("not_yet", format!("{}: this can't be done yet", path.display())))
    }

    /// Watches a folder no more; its models leave the list, its files stay.
    pub async fn remove_model_folder(&self, path: &Path) -> Result<(), Problem> {
        Err(Problem::new("not_yet", format!("{}: this can't be done yet", path.display())))
    }
}
