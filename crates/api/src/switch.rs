//! The API as a window has it: switched on and off while the window goes on, with its keys and with what waits for its
//! user.
//!
//! Invariant: one server at a time. Switching waits for no listener, no keyring that asks its user and no stream that ends:
//! what comes of it is told to those who follow.

mod callers;
mod keys;
mod place;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_app::Engine;
use lectern_app::view::{ApiAddress, ApiCallers, ApiState, ApiView, MetricsView, Problem, WaitingCall};
use lectern_core::{Grant, PermissionAnswer, ToolCall};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::approvals::{Approvals, Attended, Waiting};
use crate::auth::{Key, Keys, kept};
use crate::options::{ApiOptions, PORT};
use crate::server::Server;
use crate::state::Api;
use keys::Known;

/// Calls that are shown at once; those behind them come as these are answered.
const MOST_SHOWN: usize = 20;

/// The API of a window. Clones are the same.
#[derive(Clone)]
pub struct Switch(Arc<Inner>);

struct Inner {
    engine: Engine,
    keys: Keys,
    /// The keys for which there is no keyring.
    // Std mutexes: nothing awaits while one is held.
    session: Mutex<Vec<Key>>,
    /// The keys as the keyring had them, for the settings as they were.
    known: Mutex<Option<Known>>,
    approvals: Approvals,
    wanted: watch::Sender<Wanted>,
    state: Mutex<ApiState>,
    changes: watch::Sender<()>,
    turning: Mutex<Option<JoinHandle<()>>>,
    /// What counts, while it is served.
    serving: Mutex<Option<Api>>,
}

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    on: bool,
    bind: String,
    port: u16,
    callers: ApiCallers,
    /// Whether the window ends.
    leaving: bool,
}

/// A server, with the task that looks after its keys.
struct Running {
    server: Server,
    with: Wanted,
    _keys: Aborted,
}

/// A task that ends when this is dropped.
struct Aborted(JoinHandle<()>);

/// Somebody who looks at the API: while it is there, calls wait for an answer.
pub struct Following {
    switch: Switch,
    changes: watch::Receiver<()>,
    waiting: watch::Receiver<()>,
    _attended: Attended,
}

impl Switch {
    /// As the settings have it; nothing is served before [`Switch::begin`].
    pub fn new(engine: Engine) -> Result<Self, Problem> {
        let entry = engine.api_entry()?;
        let wanted = Wanted {
            on: entry.on,
            bind: entry.bind.unwrap_or_else(|| place::HERE.to_owned()),
            port: entry.port.unwrap_or(PORT),
            callers: ApiCallers { origins: entry.origins, hosts: entry.hosts },
            leaving: false,
        };
        Ok(Self(Arc::new(Inner {
            engine,
            keys: Keys::default(),
            session: Mutex::default(),
            known: Mutex::default(),
            approvals: Approvals::default(),
            wanted: watch::Sender::new(wanted),
            state: Mutex::new(ApiState::Off),
            changes: watch::Sender::default(),
            turning: Mutex::default(),
            serving: Mutex::default(),
        })))
    }

    /// From now on it is served when the user wants it, until [`Switch::end`].
    pub fn begin(&self) {
        let turning = tokio::spawn(self.clone().turn());
        *locked(&self.0.turning) = Some(turning);
    }

    /// How it is.
    pub fn view(&self) -> ApiView {
        let Wanted { on, bind, port, callers, .. } = self.0.wanted.borrow().clone();
        let beyond = place::address(&bind).is_ok_and(|address| !address.is_loopback());
        let waiting = self.0.approvals.waiting().into_iter().take(MOST_SHOWN).map(shown).collect();
        ApiView { on, state: self.state().clone(), bind, port, beyond, callers, waiting }
    }

    /// Switches it on or off, now and whenever the window is open. On again, it tries again.
    pub fn set_on(&self, on: bool) -> Result<ApiView, Problem> {
        self.0.engine.change_api(|entry| entry.on = on)?;
        self.0.wanted.send_modify(|wanted| wanted.on = on);
        self.told();
        Ok(self.view())
    }

    /// Listens elsewhere from now on. What other computers reach is refused with `beyond_this_computer` until the user was
    /// warned.
    pub fn set_address(&self, address: &ApiAddress) -> Result<ApiView, Problem> {
        let ip = place::address(&address.bind)?;
        if address.port == 0 {
            return Err(place::bad_port());
        }
        if !ip.is_loopback() && !address.beyond {
            return Err(place::beyond(ip));
        }
        let (bind, port) = (ip.to_string(), address.port);
        self.0.engine.change_api(|entry| {
            entry.bind = (bind != place::HERE).then(|| bind.clone());
            entry.port = (port != PORT).then_some(port);
        })?;
        self.0.wanted.send_modify(|wanted| (wanted.bind, wanted.port) = (bind, port));
        self.told();
        Ok(self.view())
    }

    /// What it counted since it was started; none while it is not served.
    pub fn metrics(&self) -> Option<MetricsView> {
        locked(&self.0.serving).as_ref().map(|api| api.metrics.view())
    }

    /// Answers a call that waits: this once, or not at all.
    pub fn answer(&self, id: &str, allow: bool) -> Result<(), Problem> {
        let answer = match allow {
            true => PermissionAnswer::Allow { grant: Grant::Once },
            false => PermissionAnswer::Deny,
        };
        match self.0.approvals.answer(id, answer) {
            true => Ok(()),
            false => Err(Problem::new("not_waiting", "this call does not wait any more")),
        }
    }

    /// Follows it, for somebody who can answer.
    pub fn follow(&self) -> Following {
        let mut changes = self.0.changes.subscribe();
        changes.mark_changed();
        let waiting = self.0.approvals.changes();
        Following { switch: self.clone(), changes, waiting, _attended: self.0.approvals.attend() }
    }

    /// Takes nothing more, lets what is under way go on for a while, and ends.
    pub async fn end(&self) {
        self.0.wanted.send_modify(|wanted| wanted.leaving = true);
        let turning = locked(&self.0.turning).take();
        if let Some(turning) = turning {
            let _ = turning.await;
        }
    }

    /// Makes what is the same as what is wanted, again and again.
    async fn turn(self) {
        let mut wanted = self.0.wanted.subscribe();
        let mut running: Option<Running> = None;
        loop {
            let now = wanted.borrow_and_update().clone();
            let keeps = now.on && !now.leaving && running.as_ref().is_some_and(|running| running.fits(&now));
            if !keeps && let Some(stopping) = running.take() {
                self.say(ApiState::Stopping);
                stopping.end().await;
                *locked(&self.0.serving) = None;
                // It may have been wanted again meanwhile.
                if wanted.has_changed().unwrap_or(false) {
                    continue;
                }
            }
            if now.leaving {
                self.say(ApiState::Off);
                return;
            }
            if !now.on {
                self.say(ApiState::Off);
            } else if running.is_none() {
                self.say(ApiState::Starting);
                tokio::select! {
                    started = self.start(&now) => match started {
                        Ok(started) => {
                            *locked(&self.0.serving) = Some(started.server.api().clone());
                            self.say(ApiState::Running { url: place::url(started.server.address()) });
                            running = Some(started);
                        }
                        Err(problem) => self.say(ApiState::Failed { problem }),
                    },
                    _ = wanted.changed() => {
                        wanted.mark_changed();
                        continue;
                    }
                }
            }
            if wanted.changed().await.is_err() {
                return;
            }
        }
    }

    async fn start(&self, wanted: &Wanted) -> Result<Running, Problem> {
        let bind: IpAddr = place::address(&wanted.bind)?;
        let (origins, hosts) = callers::read(&wanted.callers)?;
        let engine = &self.0.engine;
        // What the keyring does not give opens nothing; the list of keys says why.
        let good = kept::kept(engine).await.unwrap_or_else(|problem| {
            tracing::warn!(%problem, "the keys of the API could not be read");
            Vec::new()
        });
        let own = self.session_keys();
        self.0.keys.replace(good.into_iter().chain(own()));
        let options = ApiOptions {
            bind,
            port: wanted.port,
            origins,
            hosts,
            approvals: self.0.approvals.clone(),
            ..ApiOptions::default()
        };
        let server = Server::start(Arc::new(engine.clone()), self.0.keys.clone(), options).await;
        let server = server.map_err(|error| place::not_started(&error, bind, wanted.port))?;
        let keys = tokio::spawn(kept::follow(engine.clone(), self.0.keys.clone(), own));
        Ok(Running { server, with: wanted.clone(), _keys: Aborted(keys) })
    }

    fn say(&self, state: ApiState) {
        *self.state() = state;
        self.told();
    }

    fn told(&self) {
        self.0.changes.send_replace(());
    }

    fn state(&self) -> MutexGuard<'_, ApiState> {
        locked(&self.0.state)
    }
}

impl Following {
    /// How it is, at first and whenever it changed.
    pub async fn next(&mut self) -> ApiView {
        tokio::select! {
            _ = self.changes.changed() => {}
            _ = self.waiting.changed() => {}
        }
        self.changes.mark_unchanged();
        self.waiting.mark_unchanged();
        self.switch.view()
    }
}

impl Running {
    fn fits(&self, wanted: &Wanted) -> bool {
        let Wanted { bind, port, callers, .. } = wanted;
        self.with.bind == *bind && self.with.port == *port && self.with.callers == *callers
    }

    async fn end(self) {
        self.server.end().await;
    }
}

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a person has to see of a call; the provider's own data is none of it.
fn shown(waiting: Waiting) -> WaitingCall {
    WaitingCall {
        id: waiting.id,
        key: waiting.key.to_string(),
        session: waiting.session,
        call: ToolCall { provider_data: None, ..waiting.call },
        until: waiting.until,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
