//! Models from elsewhere: what a repository offers, and downloads.
//!
//! Invariant: no token and no signed address is in what a shell gets.

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt;
use lectern_core::ModelId;
use lectern_library::advice::{Need, guess_need};
use lectern_library::{
    Download, DownloadOptions, Downloads, Fault, Offer, Offers, Reserve, Retry, State, Token, Url,
    WebOptions, curated, name,
};
use lectern_mcp::Secrets;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::super::{Engine, Inner};
use crate::library::of_fault;
use crate::models;
use crate::secrets::Keyring;
use crate::view::{
    AppNews, CuratedView, DownloadRequest, DownloadState, DownloadView, Problem, RepositoryFile,
    RepositoryView, Verdict,
};

/// The hub that everybody knows.
const HUB: &str = "https://huggingface.co";
/// Names another hub, as for Hugging Face's own programs.
pub(super) const HUB_VARIABLE: &str = "HF_ENDPOINT";
/// The hub's token, as for Hugging Face's own programs.
pub(super) const TOKEN_VARIABLE: &str = "HF_TOKEN";
/// Where the keyring has the hub's token.
pub(super) const TOKEN: &str = "secret:huggingface";
/// A connection on which nothing comes for so long is broken.
const SILENCE: Duration = Duration::from_secs(60);
const RETRY: Retry = Retry { tries: 8, first: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// What a download leaves free on the disk.
const RESERVE: Reserve = Reserve(512 << 20);
const AT_ONCE: usize = 2;

impl Engine {
    /// The models of a repository (`owner/repo`, `owner/repo:Q4_K_M`, an address of Hugging Face), or the one file
    /// behind an address.
    pub async fn list_repository(&self, target: &str) -> Result<RepositoryView, Problem> {
        let offers = self.ready_downloads()?.offers(target).await.map_err(|fault| of_fault(&fault))?;
        let mut files: Vec<RepositoryFile> = offers.offers.iter().map(|offer| self.offered(offer)).collect();
        let suggested = self.suggested(&offers, &files);
        files.sort_by_key(|file| (file.projector, file.size.unwrap_or(u64::MAX)));
        Ok(RepositoryView {
            target: offers.target,
            host: offers.host,
            revision: offers.revision,
            files,
            suggested,
            other_files: offers.other_files,
        })
    }

    /// Begins a download, or finds the one that is under way, or the file that is here already.
    pub async fn start_download(&self, request: DownloadRequest) -> Result<DownloadView, Problem> {
        let problem = |fault: Fault| of_fault(&fault);
        let downloads = self.ready_downloads()?;
        let offers = downloads.offers(&request.target).await.map_err(problem)?;
        let offer = match &request.file {
            Some(name) => offers.choose(Some(name)).map_err(problem)?,
            None => {
                let files: Vec<RepositoryFile> =
                    offers.offers.iter().map(|offer| self.offered(offer)).collect();
                let suggested = self.suggested(&offers, &files);
                offers.choose(suggested.as_deref()).map_err(problem)?
            }
        };
        let folder = request.folder.map(|folder| std::path::absolute(&folder).unwrap_or(folder.into()));
        let begun = downloads.start(&offers, offer, folder.as_deref()).await.map_err(problem)?;
        if matches!(begun.state, State::Done) {
            self.settle_download(&begun);
        }
        self.tell_downloads();
        Ok(self.download_view(&begun))
    }

    /// Stops a download; what is here stays.
    pub async fn pause_download(&self, id: &str) -> Result<DownloadView, Problem> {
        let paused = self.ready_downloads()?.pause(id).await.map_err(|fault| of_fault(&fault))?;
        Ok(self.download_view(&paused))
    }

    /// Lets a download go on that was stopped or failed.
    pub async fn resume_download(&self, id: &str) -> Result<DownloadView, Problem> {
        let resumed = self.ready_downloads()?.resume(id).map_err(|fault| of_fault(&fault))?;
        Ok(self.download_view(&resumed))
    }

    /// Lets downloads go on that an end of the program broke off; what was stopped stays stopped. For shells that stay.
    pub fn resume_downloads(&self) {
        match self.ready_downloads() {
            Ok(downloads) => downloads.resume_broken_off(),
            Err(problem) => tracing::warn!(%problem, "downloads that were broken off do not go on"),
        }
    }

    /// Takes a download off the list; of one that is not done, what is here is deleted.
    pub async fn cancel_download(&self, id: &str) -> Result<(), Problem> {
        self.ready_downloads()?.cancel(id).await.map_err(|fault| of_fault(&fault))?;
        self.tell_downloads();
        Ok(())
    }

    /// All downloads, the oldest first: those of this run, and those that an earlier one left undone.
    pub fn downloads(&self) -> Vec<DownloadView> {
        let Ok(downloads) = self.ready_downloads() else { return Vec::new() };
        downloads.list().iter().map(|download| self.download_view(download)).collect()
    }

    /// Good small models that call tools, with the user's own additions. What can't be read of those is left out.
    pub async fn curated(&self) -> Result<Vec<CuratedView>, Problem> {
        let list = curated::curated(&self.0.home.curated());
        for fault in &list.faults {
            tracing::warn!(%fault, "a part of the user's own list of models can't be read");
        }
        let view = |model: curated::Curated| CuratedView {
            advice: Some(self.advice_by_size(model.size)),
            model: self.here(&name::safe_name(&model.file), None),
            title: model.title,
            repository: model.repository,
            file: model.file,
            quantisation: model.quantisation,
            size: model.size,
            parameters: model.parameters,
            licence: model.licence,
            languages: model.languages,
            min_memory: model.min_memory,
            note: model.note,
            verified: model.verified,
            own: model.own,
        };
        Ok(list.models.into_iter().map(view).collect())
    }

    /// Stops downloads, so that what is here is on the disk.
    pub(in crate::engine) async fn close_library(&self) {
        let opened = self.opened_downloads().clone();
        if let Some(downloads) = opened {
            downloads.shutdown().await;
        }
    }

    fn ready_downloads(&self) -> Result<Downloads, Problem> {
        let mut opened = self.opened_downloads();
        if let Some(downloads) = &*opened {
            return Ok(downloads.clone());
        }
        // What could not be opened, for a hub without an address, is tried again the next time.
        let options = self.download_options().map_err(|fault| of_fault(&fault))?;
        let downloads = Downloads::open(options).map_err(|fault| of_fault(&fault))?;
        tokio::spawn(follow(Arc::downgrade(&self.0), downloads.subscribe()));
        Ok(opened.insert(downloads).clone())
    }

    fn opened_downloads(&self) -> MutexGuard<'_, Option<Downloads>> {
        self.0.library.downloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn download_options(&self) -> Result<DownloadOptions, Fault> {
        let web = WebOptions {
            hub: self.hub_address()?,
            token: Some(token(self.0.secrets.clone())),
            silence: SILENCE,
        };
        let folder = self.0.home.models();
        Ok(DownloadOptions { folder, web, retry: RETRY, reserve: RESERVE, at_once: AT_ONCE })
    }

    fn hub_address(&self) -> Result<Url, Fault> {
        let variable = std::env::var(HUB_VARIABLE).ok().filter(|value| !value.trim().is_empty());
        let named = variable.or_else(|| self.state().settings.model_hub.clone());
        let hub = named.as_deref().unwrap_or(HUB).trim();
        hub.parse().map_err(|_| Fault::Unreachable {
            host: hub.to_owned(),
            reason: format!("it is no address; look at `model_hub` in the settings and at {HUB_VARIABLE}"),
        })
    }

    /// A mirror or a token that was changed holds at once.
    pub(in crate::engine) fn renew_hub(&self) -> Result<(), Problem> {
        let Some(downloads) = self.opened_downloads().clone() else { return Ok(()) };
        self.hub_address().and_then(|hub| downloads.set_hub(hub)).map_err(|fault| of_fault(&fault))
    }

    fn offered(&self, offer: &Offer) -> RepositoryFile {
        let size = offer.size();
        let first = offer.files.first();
        RepositoryFile {
            name: offer.name.clone(),
            size,
            quantisation: offer.quantisation.clone(),
            sha256: first.filter(|_| offer.files.len() == 1).and_then(|file| file.sha256.clone()),
            parts: u32::try_from(offer.files.len()).unwrap_or(u32::MAX),
            projector: offer.projector,
            advice: size.filter(|_| !offer.projector).map(|size| self.advice_by_size(size)),
            model: first.and_then(|file| self.here(&file.name, file.size)),
        }
    }

    /// What the target asks for; else the usual choice, or the largest that fits where that does not.
    fn suggested(&self, offers: &Offers, files: &[RepositoryFile]) -> Option<String> {
        let usual = offers.choose(None).ok()?;
        let fits = |file: &&RepositoryFile| {
            !file.projector && file.advice.as_ref().is_some_and(|advice| advice.verdict == Verdict::Fits)
        };
        let named = offers.wanted != lectern_library::target::Wanted::Any;
        let usual_fits = files.iter().any(|file| file.name == usual.name && fits(&file));
        if named || usual_fits {
            return Some(usual.name.clone());
        }
        let best = files.iter().filter(fits).max_by_key(|file| file.size);
        Some(best.map_or_else(|| usual.name.clone(), |file| file.name.clone()))
    }

    /// The advice about a file of which only the size is known.
    pub(super) fn advice_by_size(&self, size: u64) -> crate::view::AdviceView {
        let need = move |context| -> Need { guess_need(size, context) };
        self.advice(&need, None, None, None, None)
    }

    /// The model of the list that has a file of this name, and of this size where it is known.
    fn here(&self, file: &str, size: Option<u64>) -> Option<ModelId> {
        let state = self.state();
        let found = state.settings.models.iter().find(|entry| {
            let Some(path) = entry.path() else { return false };
            path.file_name().is_some_and(|name| name == file)
                && std::fs::metadata(path).is_ok_and(|meta| size.is_none_or(|size| size == meta.len()))
        });
        found.map(|entry| entry.id.clone())
    }

    /// A model that came is on the list.
    fn settle_download(&self, download: &Download) {
        if download.projector {
            return;
        }
        let path = download.file.clone();
        let added = self.change_settings(|settings| {
            settings.hidden_models.retain(|hidden| *hidden != path);
            models::add(settings, &path)
        });
        if let Err(problem) = added {
            tracing::warn!(%problem, "a downloaded model was not put on the list");
        }
        self.tell_models();
    }

    fn download_view(&self, download: &Download) -> DownloadView {
        let state = match &download.state {
            State::Queued => DownloadState::Queued,
            State::Running => DownloadState::Running,
            State::Paused => DownloadState::Paused,
            State::Checking => DownloadState::Checking,
            State::Done => DownloadState::Done { model: self.model_at(&download.file) },
            State::Failed(fault) => DownloadState::Failed { problem: of_fault(fault) },
        };
        DownloadView {
            id: download.id.clone(),
            name: download.file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path: download.file.display().to_string(),
            target: download.target.clone(),
            host: download.host.clone(),
            done: download.done,
            total: download.total,
            bytes_per_second: download.bytes_per_second,
            seconds_left: download.seconds_left,
            state,
            notice: download.notice.clone(),
        }
    }

    fn model_at(&self, path: &Path) -> Option<ModelId> {
        let state = self.state();
        state.settings.models.iter().find(|entry| entry.path() == Some(path)).map(|entry| entry.id.clone())
    }

    fn tell_downloads(&self) {
        self.tell(AppNews::DownloadsChanged { downloads: self.downloads() });
    }
}

/// Passes the news of downloads on, for as long as there is an engine.
async fn follow(engine: Weak<Inner>, mut news: broadcast::Receiver<Download>) {
    // What came is settled once, also when its last word is heard twice.
    let mut settled: Vec<PathBuf> = Vec::new();
    loop {
        let heard = news.recv().await;
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        match heard {
            Ok(download) => {
                let done = matches!(download.state, State::Done);
                if done && !settled.contains(&download.file) {
                    engine.settle_download(&download);
                    settled.push(download.file.clone());
                } else if !done {
                    settled.retain(|file| *file != download.file);
                }
                let download = Box::new(engine.download_view(&download));
                engine.tell(AppNews::DownloadChanged { download });
            }
            Err(RecvError::Lagged(_)) => engine.tell_downloads(),
            Err(RecvError::Closed) => return,
        }
    }
}

/// The environment's word first, then the keyring's.
fn token(keyring: Keyring) -> Token {
    Arc::new(move || {
        let keyring = keyring.clone();
        async move {
            let variable = std::env::var(TOKEN_VARIABLE).ok().filter(|value| !value.trim().is_empty());
            match variable {
                Some(token) => Some(token.trim().to_owned()),
                // Without the keyring the hub is asked as by just anybody.
                None => keyring.get(TOKEN).await.ok().flatten(),
            }
        }
        .boxed()
    })
}
