//! News that belongs to no turn, for as long as a shell listens.

use std::collections::VecDeque;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Engine;
use crate::view::AppNews;

/// Follows the news. A follower that was too slow gets the present state in place of what it missed.
pub struct News {
    engine: Engine,
    receiver: broadcast::Receiver<AppNews>,
    missed: VecDeque<AppNews>,
}

impl News {
    /// The next news; none when the engine is gone.
    pub async fn next(&mut self) -> Option<AppNews> {
        loop {
            if let Some(news) = self.missed.pop_front() {
                return Some(news);
            }
            match self.receiver.recv().await {
                Ok(news) => return Some(news),
                Err(RecvError::Lagged(_)) => {
                    self.receiver = self.engine.0.news.subscribe();
                    self.missed = self.engine.everything().into();
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Engine {
    /// News from now on.
    pub fn subscribe(&self) -> News {
        News { engine: self.clone(), receiver: self.0.news.subscribe(), missed: VecDeque::new() }
    }

    /// Tells that servers were added, removed, or brought back.
    pub(super) fn tell_servers(&self) {
        self.tell(AppNews::ServersChanged { servers: self.servers() });
    }

    /// The present state as news.
    fn everything(&self) -> Vec<AppNews> {
        let view = self.app_view();
        let mut all = vec![AppNews::ServersChanged { servers: view.servers }];
        all.push(AppNews::ModelsChanged { model: view.model, models: view.models });
        all.push(AppNews::ProvidersChanged { providers: view.providers });
        all.push(AppNews::DownloadsChanged { downloads: view.downloads });
        all.push(AppNews::VaultsChanged { vaults: view.vaults });
        if let Ok(conversations) = self.conversations() {
            all.push(AppNews::ConversationsChanged { conversations });
        }
        all
    }
}
