//! Where the API listens, and how much it takes.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use url::Url;

use crate::approvals::Approvals;
use crate::sessions::SessionLimits;

/// The port, unless another is named.
pub const PORT: u16 = 11_480;

/// How the API is started. The default is for this computer alone.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// The address to listen at.
    pub bind: IpAddr,
    /// The port; 0 for a free one.
    pub port: u16,
    /// Web pages that may ask, by their origin. No other page may.
    pub origins: Vec<Url>,
    /// Names, beside addresses, under which this computer may be asked when it listens beyond itself.
    pub hosts: Vec<String>,
    /// How much is taken.
    pub limits: Limits,
    /// Where calls wait for the user; a window looks there.
    pub approvals: Approvals,
    /// How much a session may have.
    pub sessions: SessionLimits,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            origins: Vec::new(),
            hosts: Vec::new(),
            limits: Limits::default(),
            approvals: Approvals::default(),
            sessions: SessionLimits::default(),
        }
    }
}

/// How much is taken, and for how long anybody waits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a body.
    pub body_bytes: usize,
    /// How long a body may take to come.
    pub body_time: Duration,
    /// How long the head of a request may take to come.
    pub head_time: Duration,
    /// How long a reader may let what is ready wait.
    pub write_time: Duration,
    /// How long one answer may take in all.
    pub answer_time: Duration,
    /// Header lines of a request.
    pub headers: usize,
    /// Bytes of all header lines.
    pub header_bytes: usize,
    /// Connections at once.
    pub connections: usize,
    /// Requests at once with one key.
    pub concurrent: usize,
    /// Requests a second with one key, in the long run.
    pub per_second: f64,
    /// Requests with one key that may come at once.
    pub burst: f64,
    /// Calls of tools at once with one key; more of them wait.
    pub calls: usize,
    /// How long one call of a tool may take, waiting included. A server's own limits are shorter.
    pub call_time: Duration,
    /// How long a call waits for the user's consent.
    pub consent_time: Duration,
    /// How long streams may go on when the server ends.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            body_time: Duration::from_secs(30),
            head_time: Duration::from_secs(10),
            write_time: Duration::from_secs(30),
            answer_time: Duration::from_secs(60 * 60),
            headers: 64,
            header_bytes: 32 << 10,
            connections: 1_024,
            concurrent: 256,
            per_second: 200.0,
            burst: 1_000.0,
            calls: 16,
            call_time: Duration::from_secs(10 * 60),
            consent_time: Duration::from_secs(5 * 60),
            drain: Duration::from_secs(10),
        }
    }
}
