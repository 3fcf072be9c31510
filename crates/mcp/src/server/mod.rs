//! One server's life: started, ready, failed, started again.
//!
//! Invariant: one task owns the process. Nobody else starts or ends it, and its end never reaches another server. Every
//! state it is in can be seen.

mod count;
mod life;
mod restart;
mod sign;
mod start;

pub use restart::RestartPolicy;
pub use sign::SignInError;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use lectern_core::ServerId;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use crate::auth::Browser;
use crate::config::{HostOptions, ServerConfig};
use crate::connection::{Connection, Records};
use crate::exchange::Limits;
use crate::handshake::{Opening, Session};
use crate::http::Loss;
use crate::log::ServerLog;
use crate::mask::Mask;
use crate::naming::server_part;
use crate::peer::{Notice, Peer, PeerError};
use crate::status::{Failure, FailureCode, ServerState, ServerStatus, StartStep};
use crate::tools::{Listing, Tools};
use crate::traffic::Traffic;

/// A server that changes its tools in a burst is asked once.
const SETTLING: Duration = Duration::from_millis(100);
/// Pause before a subscription that broke is taken again; each further one is longer.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// A subscription that lasted this long was a good one.
const LISTENED: Duration = Duration::from_secs(10);
/// Subscriptions in a row that ended sooner than that, each in good order.
const SHORT_ENDS: u32 = 3;
/// How long a list may take after the start.
const RELIST_LIMIT: Duration = Duration::from_secs(30);

/// Who hears of every change of a server.
pub(crate) trait Follower: Send + Sync {
    /// It is about to be seen so.
    fn becoming(&self, status: &ServerStatus);
    /// It is seen so.
    fn became(&self, status: ServerStatus);
}

/// The orders of a server that was not launched yet.
pub(crate) struct Inbox(mpsc::UnboundedReceiver<Order>);

/// A server that answers.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) peer: Peer,
    pub(crate) session: Arc<Session>,
    pub(crate) tools: Arc<Tools>,
}

/// One server of the settings, running or not.
pub(crate) struct Server {
    config: ServerConfig,
    options: Arc<HostOptions>,
    mask: Mask,
    log: Arc<ServerLog>,
    traffic: Arc<Traffic>,
    status: watch::Sender<ServerStatus>,
    live: RwLock<Option<Live>>,
    orders: mpsc::UnboundedSender<Order>,
    follower: Arc<dyn Follower>,
    /// How it was greeted when it was first ready; some old servers end themselves when they are probed.
    opening: OnceLock<Opening>,
    /// The user has seen some of the tools.
    seen: Notify,
    task: OnceLock<AbortHandle>,
    /// Where the user signs in during the next start.
    visit: Mutex<Option<Arc<dyn Browser>>>,
    /// It wanted to know who asks after it had been ready; its next greeting need not ask again.
    refused_late: AtomicBool,
    /// Calls at once, when there is a limit.
    slots: Option<Arc<Semaphore>>,
}

enum Order {
    /// Start, unless it has been started since `seen` starts.
    Start {
        seen: u64,
        by: Starter,
    },
    Restart,
    Stop(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

/// Who wants a start.
enum Starter {
    User,
    /// A call; it does not make a server that fails again and again a healthy one.
    Call,
}

/// How one run of the process, or one rest without a process, ended.
enum Ended {
    Failed {
        failure: Box<Failure>,
        /// How long it had been ready.
        ready_for: Option<Duration>,
    },
    /// It was not started: somebody has to say or do something first.
    Waiting(ServerState),
    /// The pause before a restart is over.
    Paused,
    Ordered(Order),
    /// Nobody holds the server any more.
    Forgotten,
}

impl Server {
    /// Takes a server into care. Nothing is told or started before it is launched: who hears of it shall find it.
    pub(crate) fn new(
        config: ServerConfig,
        options: Arc<HostOptions>,
        follower: Arc<dyn Follower>,
    ) -> (Arc<Self>, Inbox) {
        let mask = Mask::of(&config);
        let name = server_part(config.id.as_str());
        let log = Arc::new(ServerLog::new(options.log_dir.as_deref(), &name, mask.clone()));
        let traffic = Arc::new(Traffic::new(options.traffic_dir.as_deref(), &name, mask.clone()));
        let status = ServerStatus {
            id: config.id.clone(),
            state: if config.disabled {
                ServerState::Stopped
            } else {
                ServerState::Starting(StartStep::Spawn)
            },
            reported: None,
            protocol: None,
            instructions: None,
            tools: Arc::default(),
            unseen: Arc::default(),
            resources: None,
            prompts: None,
            signed_in: None,
            pid: None,
            starts: 0,
        };
        let (orders, inbox) = mpsc::unbounded_channel();
        let slots = config.max_concurrent.map(|most| Arc::new(Semaphore::new(most.max(1) as usize)));
        let server = Arc::new(Self {
            slots,
            config,
            options,
            mask,
            log,
            traffic,
            status: watch::Sender::new(status),
            live: RwLock::default(),
            orders,
            follower,
            opening: OnceLock::new(),
            seen: Notify::new(),
            task: OnceLock::new(),
            visit: Mutex::default(),
            refused_late: AtomicBool::new(false),
        });
        (server, Inbox(inbox))
    }

    /// Starts it unless it is disabled. Returns at once.
    pub(crate) fn launch(self: Arc<Self>, inbox: Inbox) {
        let status = self.status();
        self.follower.becoming(&status);
        self.follower.became(status);
        let task = tokio::spawn(Arc::clone(&self).supervise(inbox.0));
        let _ = self.task.set(task.abort_handle());
    }

    pub(crate) fn id(&self) -> &ServerId {
        &self.config.id
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub(crate) fn mask(&self) -> &Mask {
        &self.mask
    }

    pub(crate) fn log(&self) -> &ServerLog {
        &self.log
    }

    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(crate) fn status(&self) -> ServerStatus {
        self.status.borrow().clone()
    }

    /// The limits of a call, of one tool by its original name or of any.
    pub(crate) fn limits(&self, tool: Option<&str>) -> Limits {
        let of_tool = tool.and_then(|tool| self.config.tool_timeouts.get(tool)).copied();
        let own = of_tool.or(self.config.timeout_s).map(Duration::from_secs);
        let silence = own.unwrap_or(self.options.call_timeout);
        let total = self.config.total_timeout_s.map(Duration::from_secs);
        Limits {
            silence,
            // A total that the user chose holds; the usual one never cuts a longer silence short.
            total: total.unwrap_or_else(|| self.options.total_timeout.max(silence)),
            result_budget: self.config.result_budget.unwrap_or(self.options.result_budget),
        }
    }

    /// Places for calls at once; none when there is no limit.
    pub(crate) fn slots(&self) -> Option<&Arc<Semaphore>> {
        self.slots.as_ref()
    }

    /// Tells the server, if it runs, that its folders are others now. In the modern era it asks when it needs them.
    pub(crate) fn roots_changed(&self) {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(live) = live.filter(|live| !live.session.is_modern()) {
            live.peer.notify("notifications/roots/list_changed", serde_json::Map::new());
        }
    }

    /// The running server; a dead one is started first. What is in the way is said in a sentence.
    pub(crate) async fn ready(&self) -> Result<Live, String> {
        let mut watch = self.status.subscribe();
        // The number of starts before the one that this call waits for.
        let mut waits_since: Option<u64> = None;
        loop {
            let (state, starts) = {
                let status = watch.borrow_and_update();
                (status.state.clone(), status.starts)
            };
            match state {
                ServerState::Stopped => return Err(format!("the server `{}` is stopped", self.id())),
                ServerState::NeedsApproval => {
                    return Err(format!("the server `{}` waits for the user's approval", self.id()));
                }
                ServerState::NeedsSignIn => {
                    return Err(format!("the server `{}` waits for the user to sign in", self.id()));
                }
                ServerState::Failed(failure) | ServerState::Restarting { failure, .. }
                    if waits_since.is_some_and(|since| since < starts) =>
                {
                    return Err(failure.to_string());
                }
                ServerState::Failed(_) | ServerState::Restarting { .. } => {
                    waits_since = Some(starts);
                    self.order(Order::Start { seen: starts, by: Starter::Call });
                }
                ServerState::Starting(_) => waits_since = waits_since.or(Some(starts.saturating_sub(1))),
                ServerState::Ready | ServerState::Degraded(_) => {
                    let live = self.live.read().unwrap_or_else(PoisonError::into_inner).clone();
                    // Without an open connection it has just ended, and its state will say so in a moment.
                    if let Some(live) = live.filter(|live| !live.peer.is_closed()) {
                        return Ok(live);
                    }
                }
            }
            if watch.changed().await.is_err() {
                return Err(format!("the server `{}` is gone", self.id()));
            }
        }
    }

    /// What became of a server whose connection just ended, as a sentence.
    pub(crate) async fn epitaph(&self) -> String {
        let mut watch = self.status.subscribe();
        let over =
            watch.wait_for(|status| !matches!(status.state, ServerState::Ready | ServerState::Degraded(_)));
        let state = tokio::time::timeout(Duration::from_secs(5), over).await;
        match state.ok().and_then(Result::ok).map(|status| status.state.clone()) {
            Some(ServerState::Failed(failure) | ServerState::Restarting { failure, .. }) => {
                failure.to_string()
            }
            Some(
                ServerState::Stopped
                | ServerState::NeedsApproval
                | ServerState::NeedsSignIn
                | ServerState::Starting(_)
                | ServerState::Ready
                | ServerState::Degraded(_),
            )
            | None => format!("the server `{}` ended during the call", self.id()),
        }
    }

    /// Starts a server that is stopped or failed.
    pub(crate) fn start(&self) {
        let seen = self.status.borrow().starts;
        self.order(Order::Start { seen, by: Starter::User });
    }

    /// Ends the process, if there is one, and starts it anew.
    pub(crate) fn restart(&self) {
        self.order(Order::Restart);
    }

    /// Lists the tools again, now or when it runs, and asks the approval about each. The process stays.
    pub(crate) fn review(&self) {
        self.seen.notify_one();
    }

    /// Whether the user approved what would run.
    fn may_start(&self) -> bool {
        self.options.approval.as_ref().is_none_or(|approval| approval.may_start(&self.config))
    }

    /// Ends the process until somebody starts it again.
    pub(crate) async fn stop(&self) {
        let (done, over) = oneshot::channel();
        self.order(Order::Stop(done));
        let _ = over.await;
    }

    /// Ends the process for good.
    pub(crate) async fn close(&self) {
        let (done, over) = oneshot::channel();
        self.order(Order::Close(done));
        let _ = over.await;
    }

    /// Kills the process without asking it first.
    pub(crate) fn abandon(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// Waits until it is not starting any more. A start that is tried again soon is not over.
    pub(crate) async fn settled(&self) {
        let mut watch = self.status.subscribe();
        let _ = watch.wait_for(|status| !status.state.is_starting()).await;
    }

    fn order(&self, order: Order) {
        // After `close` there is nobody to order about; the caller's channel then says so.
        let _ = self.orders.send(order);
    }

    fn records(&self) -> Records<'_> {
        Records { log: &self.log, traffic: &self.traffic, mask: &self.mask }
    }

    fn listing(&self) -> Listing<'_> {
        let approval = self.options.approval.as_deref();
        Listing { config: &self.config, approval, most: self.options.max_tools }
    }

    /// Looks after a running server until it ends or somebody wants something else.
    async fn serve(
        &self,
        mut connection: Connection,
        live: Live,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) -> Ended {
        let ready = tokio::time::Instant::now();
        let changes = subscribe(live.peer.clone(), Arc::clone(&live.session), Arc::clone(&self.log));
        let mut relist: Option<BoxFuture<'_, ()>> = None;
        let mut again = false;
        let counting = self.keep_counts(live.clone());
        tokio::pin!(changes, counting);
        let lost = loop {
            tokio::select! {
                order = life::meaningful(orders) => {
                    self.set_live(None);
                    connection.close().await;
                    return order;
                }
                exit = connection.body.ended() => break Some(exit),
                () = live.peer.closed() => {
                    // Usually the process ends just after its output.
                    break tokio::time::timeout(Duration::from_millis(500), connection.body.ended()).await.ok();
                }
                () = &mut changes => {}
                () = &mut counting => {}
                Some(notice) = connection.notices.recv() => match notice {
                    Notice::Log(line, caller) => self.log.line_for(&line, caller),
                    Notice::ToolsChanged if relist.is_some() => again = true,
                    Notice::ToolsChanged => relist = Some(self.relist(live.clone()).boxed()),
                },
                () = self.seen.notified() => match relist {
                    Some(_) => again = true,
                    None => relist = Some(self.relist(live.clone()).boxed()),
                },
                () = async { if let Some(relist) = &mut relist { relist.await } }, if relist.is_some() => {
                    relist = std::mem::take(&mut again).then(|| self.relist(live.clone()).boxed());
                }
            }
        };
        drop(relist);
        self.set_live(None);
        let loss = connection.body.loss();
        connection.close().await;
        if let Some(loss) = loss {
            return self.lost(loss, ready.elapsed());
        }
        let message = match lost {
            Some(exit) => format!("the server `{}` ended: {exit}", self.id()),
            None => format!("the server `{}` closed its output", self.id()),
        };
        let failure = self.failure(FailureCode::Died, message, lost);
        Ended::Failed { failure, ready_for: Some(ready.elapsed()) }
    }

    /// A remote server's connection ended by itself.
    fn lost(&self, loss: Loss, ready_for: Duration) -> Ended {
        let (code, message) = match loss {
            Loss::Unreachable(why) => {
                (FailureCode::Unreachable, format!("the server `{}`: {why}", self.id()))
            }
            Loss::SignIn(why) => {
                self.refused_late.store(true, Ordering::Relaxed);
                (FailureCode::SignIn, format!("the server `{}`: sign in first: {why}", self.id()))
            }
        };
        Ended::Failed { failure: self.failure(code, message, None), ready_for: Some(ready_for) }
    }

    /// Asks for the tools again; the old ones stay when there is no answer.
    async fn relist(&self, live: Live) {
        live.peer.desk().cache.forget(&["tools/call"]);
        tokio::time::sleep(SETTLING).await;
        match tokio::time::timeout(RELIST_LIMIT, self.listing().fetch(&live.peer, &live.session)).await {
            Ok(Ok(tools)) => self.publish(&Live { tools: Arc::new(tools), ..live }),
            Ok(Err(error)) => self.log.line(&format!("[lectern] tools not listed again: {error}")),
            Err(_) => self.log.line("[lectern] tools not listed again: no answer"),
        }
    }

    fn publish(&self, live: &Live) {
        self.set_live(Some(live.clone()));
        for reason in &live.tools.dropped {
            self.log.line(&format!("[lectern] {reason}"));
        }
        self.change(|status| {
            status.tools = Arc::clone(&live.tools.specs);
            status.unseen = Arc::clone(&live.tools.unseen);
            status.state = match live.tools.dropped.as_slice() {
                [] => ServerState::Ready,
                reasons => ServerState::Degraded(reasons.to_vec()),
            };
        });
    }

    /// The running server, if it runs.
    pub(crate) fn live(&self) -> Option<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The running server, as soon as it runs. Starts nothing; never returns when it is not started again.
    pub(crate) async fn next_live(&self) -> Live {
        let mut watch = self.status.subscribe();
        loop {
            if let Some(live) = self.live().filter(|live| !live.peer.is_closed()) {
                return live;
            }
            if watch.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn set_live(&self, live: Option<Live>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
    }

    /// Only called by the task that owns the process. Who has waited for a change finds the tools in the host, and who
    /// heard the news finds the server as they say.
    fn change(&self, change: impl FnOnce(&mut ServerStatus)) {
        let mut status = self.status();
        change(&mut status);
        self.follower.becoming(&status);
        self.status.send_replace(status.clone());
        self.follower.became(status);
    }
}

/// In the modern era changes of the lists are only told to who listens. Never returns.
async fn subscribe(peer: Peer, session: Arc<Session>, log: Arc<ServerLog>) {
    let lists = [
        ("toolsListChanged", "/tools/listChanged"),
        ("resourcesListChanged", "/resources/listChanged"),
        ("promptsListChanged", "/prompts/listChanged"),
    ];
    let told = lists.into_iter().filter(|(_, capability)| session.can(capability));
    let filter: serde_json::Map<_, _> = told.map(|(name, _)| (name.to_owned(), true.into())).collect();
    if session.is_modern() && !filter.is_empty() {
        let why = listen(&peer, &session, &serde_json::json!({ "notifications": filter })).await;
        if let Some(why) = why.filter(|_| !peer.is_closed()) {
            log.line(&format!("[lectern] the server tells of no more changes: {why}"));
        }
    }
    std::future::pending().await
}

/// Listens for as long as the server lets anybody; after a break it begins anew, ever more slowly. Returns why it gave up;
/// none when the connection is gone, of which others tell.
async fn listen(peer: &Peer, session: &Session, filter: &serde_json::Value) -> Option<String> {
    let mut pause = LISTEN_AGAIN;
    let mut short = 0;
    loop {
        let begun = tokio::time::Instant::now();
        match peer.ask("subscriptions/listen", session.params(filter.clone())).await {
            Err(PeerError::Lost(_) | PeerError::Damaged(_)) => {}
            // It ended in good order: after a while, as a proxy or a restart may end it, or at once.
            Ok(_) if begun.elapsed() > LISTENED => short = 0,
            Ok(_) if short < SHORT_ENDS => short += 1,
            Ok(_) => return Some("it ended the listening again and again".into()),
            Err(PeerError::Closed) => return None,
            Err(error) => return Some(error.to_string()),
        }
        pause = if begun.elapsed() > LISTENED { LISTEN_AGAIN } else { (pause * 2).min(RELIST_LIMIT) };
        tokio::time::sleep(pause).await;
        // What was told in the meantime was not heard.
        peer.tools_may_have_changed();
        peer.desk().lists_may_have_changed();
    }
}
