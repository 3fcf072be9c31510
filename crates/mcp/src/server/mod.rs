//! One server's life: started, ready, failed, started again.
//!
//! Invariant: one task owns the process. Nobody else starts or ends it, and its end never reaches another server. Every
//! state it is in can be seen.

mod count;
mod life;
mod listing;
mod restart;
mod sign;
mod start;
mod waiting;

pub use restart::RestartPolicy;
pub use sign::SignInError;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use lectern_core::ServerId;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::auth::Browser;
use crate::config::{HostOptions, ServerConfig};
use crate::connection::{Connection, Records};
use crate::exchange::Limits;
use crate::handshake::{Opening, Session};
use crate::http::Loss;
use crate::log::ServerLog;
use crate::mask::Mask;
use crate::naming::server_part;
use crate::peer::{Notice, Peer};
use crate::status::{Failure, FailureCode, ServerState, ServerStatus, StartStep};
use crate::tools::Tools;
use crate::traffic::Traffic;

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
    /// The list of tools is older than it holds, and somebody wants it.
    old: Notify,
    /// The list was asked for again, with or without an answer.
    listed: Notify,
    /// When the list will be older than it holds.
    due: Mutex<Option<Instant>>,
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
            old: Notify::new(),
            listed: Notify::new(),
            due: Mutex::default(),
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

    fn order(&self, order: Order) {
        // After `close` there is nobody to order about; the caller's channel then says so.
        let _ = self.orders.send(order);
    }

    fn records(&self) -> Records<'_> {
        Records { log: &self.log, traffic: &self.traffic, mask: &self.mask }
    }

    /// Looks after a running server until it ends or somebody wants something else.
    async fn serve(
        &self,
        mut connection: Connection,
        live: Live,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) -> Ended {
        let ready = Instant::now();
        let changes = listing::subscribe(live.peer.clone(), Arc::clone(&live.session), Arc::clone(&self.log));
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
                () = self.old.notified() => {
                    // One that is on its way is new enough.
                    relist.get_or_insert_with(|| self.refresh(live.clone()).boxed());
                }
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

    /// The running server, if it runs.
    pub(crate) fn live(&self) -> Option<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
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
