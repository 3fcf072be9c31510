//! Models from elsewhere: what a repository offers, and downloads.
//!
//! Invariant: no token and no signed address is in what a shell gets.

use super::super::Engine;
use crate::view::{CuratedView, DownloadRequest, DownloadView, Problem, RepositoryView};

impl Engine {
    /// The models of a repository (`owner/repo`, `owner/repo:Q4_K_M`, an address of Hugging Face), or the one file
    /// behind an address.
    pub async fn list_repository(&self, target: &str) -> Result<RepositoryView, Problem> {
        Err(not_yet(target))
    }

    /// Begins a download, or finds the one that is under way, or the file that is here already.
    pub async fn start_download(&self, request: DownloadRequest) -> Result<DownloadView, Problem> {
        Err(not_yet(&request.target))
    }

    /// Stops a download; what is here stays.
    pub async fn pause_download(&self, id: &str) -> Result<DownloadView, Problem> {
        Err(not_yet(id))
    }

    /// Lets a download go on that was stopped or failed.
    pub async fn resume_download(&self, id: &str) -> Result<DownloadView, Problem> {
        Err(not_yet(id))
    }

    /// Takes a download off the list; of one that is not done, what is here is deleted.
    pub async fn cancel_download(&self, id: &str) -> Result<(), Problem> {
        Err(not_yet(id))
    }

    /// All downloads, the oldest first: those of this run, and those that an earlier one left undone.
    pub fn downloads(&self) -> Vec<DownloadView> {
        Vec::new()
    }

    /// Good small models that call tools, with the user's own additions.
    pub async fn curated(&self) -> Result<Vec<CuratedView>, Problem> {
        Ok(Vec::new())
    }
}

fn not_yet(what: &str) -> Problem {
    Problem::new("not_yet", format!("{what}: this can't be done yet"))
}
