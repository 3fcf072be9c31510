//! One reply over HTTP: asks, reads to the end, tries again where that may help.
//!
//! Invariant: a request is sent again only while nothing of a reply was shown; each pause is told first; cancel ends
//! everything at once and closes the connection. `Finished` comes after the last byte.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures::stream::BoxStream;
use lectern_core::{Delta, FinishReason, ModelError};
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, LOCATION, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::credentials::{Credentials, KeyHeader, Proof, SignInError, Token};
use crate::fault::{Fault, FaultKind, Stage};
use crate::flow::{Out, stream_of};
use crate::problem::{About, code_of, error_of, sentence};
use crate::reply::{Body, Reader, Verdict};
use crate::transport::{Limits, cause};

/// Bytes of an error's body that are read.
const ERROR_BODY: usize = 256 << 10;
/// How long an error's body may take, and the end of a stream after its end mark.
const EPILOGUE: Duration = Duration::from_secs(5);

/// The way to one provider.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) client: reqwest::Client,
    pub(crate) credentials: Credentials,
    pub(crate) key: KeyHeader,
    pub(crate) limits: Limits,
    pub(crate) about: About,
}

impl Line {
    /// A login that is refused is something else where there is a key, or nothing.
    pub(crate) fn judged(&self, mut fault: Fault) -> Fault {
        if fault.kind == FaultKind::SignedOut {
            fault.kind = match &self.credentials {
                Credentials::Tokens(_) => FaultKind::SignedOut,
                Credentials::Key(_) => FaultKind::BadKey,
                Credentials::None => FaultKind::KeyMissing,
            };
        }
        fault
    }
}

/// One request for a reply.
pub(crate) struct Ask {
    pub(crate) url: Url,
    pub(crate) body: Bytes,
    /// Told before the first try.
    pub(crate) notices: Vec<Delta>,
    /// Where the provider lists its models, for names that are like a wrong one.
    pub(crate) models: Option<Url>,
}

/// Streams a reply. `reader` makes a reader for each try.
pub(crate) fn stream<R, F>(
    line: Line,
    ask: Result<Ask, Fault>,
    reader: F,
    cancel: CancellationToken,
) -> BoxStream<'static, Result<Delta, ModelError>>
where
    R: Reader + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    stream_of(move |out| async move {
        let work = async {
            match ask {
                Ok(ask) => {
                    Exchange { line: &line, out: &out, secret: None, shown: false }.run(&ask, &reader).await
                }
                Err(fault) => Err(error_of(&fault, &line.about, None)),
            }
        };
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(FinishReason::Cancelled),
            end = work => end,
        };
        out.send(end.map(Delta::Finished)).await;
    })
}

struct Exchange<'a> {
    line: &'a Line,
    out: &'a Out,
    secret: Option<SecretString>,
    /// Whether anything of a reply was told.
    shown: bool,
}

/// How a try ended.
enum Try {
    Done(FinishReason),
    Failed(Fault),
    /// The provider refused this token.
    Refused(Option<Token>, Fault),
}

impl Exchange<'_> {
    async fn run<R: Reader, F: Fn() -> R>(
        mut self,
        ask: &Ask,
        reader: &F,
    ) -> Result<FinishReason, ModelError> {
        for notice in &ask.notices {
            self.out.send(Ok(notice.clone())).await;
        }
        let limit = self.line.limits.total;
        let end = match timeout(limit, self.tries(ask, reader)).await {
            Ok(end) => end,
            Err(_) => Err(timed_out(Stage::Total, limit)),
        };
        end.map_err(|mut fault| {
            // Where nothing but thoughts came, there is no answer that could be incomplete.
            fault.broke_off |= self.shown && fault.kind != FaultKind::Empty;
            error_of(&fault, &self.line.about, self.secret.as_ref().map(ExposeSecret::expose_secret))
        })
    }

    async fn tries<R: Reader, F: Fn() -> R>(&mut self, ask: &Ask, reader: &F) -> Result<FinishReason, Fault> {
        let mut refused = None;
        let mut renewed = false;
        let mut attempt = 1;
        loop {
            let last = attempt >= self.line.limits.attempts;
            let fault = match self.once(ask, reader(), refused.take(), last).await {
                Try::Done(finish) => return Ok(finish),
                Try::Refused(token, _) if !std::mem::replace(&mut renewed, true) => {
                    refused = token;
                    continue;
                }
                Try::Refused(_, fault) | Try::Failed(fault) => fault,
            };
            let pause = pause(&self.line.limits, attempt, fault.wait);
            if self.shown || last || !fault.is_passing() || pause > self.line.limits.longest_pause {
                return Err(self.with_near_names(ask, fault).await);
            }
            self.tell_pause(&fault, attempt, pause).await;
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn tell_pause(&self, fault: &Fault, attempt: u32, pause: Duration) {
        let after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let (reason, message) = (code_of(fault), sentence(fault, &self.line.about));
        self.out.send(Ok(Delta::Retrying { after_ms, attempt, reason, message })).await;
    }

    /// One try, from the token to the last byte.
    async fn once<R: Reader>(&mut self, ask: &Ask, reader: R, refused: Option<Token>, last: bool) -> Try {
        let proof = match self.line.credentials.proof(self.line.key, refused).await {
            Ok(proof) => proof,
            Err(error) => return Try::Failed(no_token(error)),
        };
        self.secret.clone_from(&proof.secret);
        let response = match self.send(ask, &proof).await {
            Ok(response) => response,
            Err(fault) => return Try::Failed(fault),
        };
        match response.status().as_u16() {
            200..=299 => self.read(response, reader, last).await,
            status => {
                let fault = self.line.judged(error_answer(response).await);
                if status == 401 && self.line.credentials.can_renew() {
                    return Try::Refused(proof.token, fault);
                }
                Try::Failed(fault)
            }
        }
    }

    async fn send(&self, ask: &Ask, proof: &Proof) -> Result<Response, Fault> {
        let request = self
            .line
            .client
            .post(ask.url.clone())
            .headers(proof.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(ask.body.clone());
        let limit = self.line.limits.first_byte;
        match timeout(limit, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(not_sent(&error)),
            Err(_) => Err(timed_out(Stage::Waiting, limit)),
        }
    }

    async fn read<R: Reader>(&mut self, mut response: Response, reader: R, last: bool) -> Try {
        let mut body = Body::new(reader);
        let mut deltas = Vec::new();
        let mut begun = false;
        loop {
            // A server may send its headers at once and then read the prompt: until the first byte it is waited for.
            let (stage, limit) = match (body.ended(), begun) {
                (true, _) => (Stage::Reading, EPILOGUE),
                (false, true) => (Stage::Reading, self.line.limits.read),
                (false, false) => (Stage::Waiting, self.line.limits.first_byte),
            };
            let fault = match timeout(limit, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    begun |= !bytes.is_empty();
                    let pushed = body.push(&bytes, &mut deltas);
                    self.tell(&mut deltas).await;
                    match pushed {
                        Ok(()) => continue,
                        Err(fault) => fault,
                    }
                }
                Ok(Ok(None)) => break,
                // Nothing was to follow.
                Ok(Err(_)) | Err(_) if body.ended() => break,
                Ok(Err(error)) => Fault::of(FaultKind::Broken { why: cause(&error) }),
                Err(_) => timed_out(stage, limit),
            };
            // What stands there already is not asked for again: all of it counts.
            if self.shown || last {
                self.keep(body, &mut deltas).await;
            }
            return Try::Failed(fault);
        }
        let (_, verdict) = body.finish(&mut deltas);
        self.tell(&mut deltas).await;
        self.conclude(verdict, last).await
    }

    /// Tells what came of a reply that broke off and was not told yet. Half a call is no call.
    async fn keep<R: Reader>(&mut self, body: Body<R>, deltas: &mut Vec<Delta>) {
        let (_, verdict) = body.finish(deltas);
        self.tell(deltas).await;
        self.tell(&mut verdict.without_calls().held).await;
    }

    async fn conclude(&mut self, verdict: Verdict, last: bool) -> Try {
        let Verdict { end, mut held, again, unmade: _ } = verdict;
        if let Some(fault) = again.filter(|_| !self.shown && !last) {
            return Try::Failed(fault);
        }
        self.tell(&mut held).await;
        match end {
            Ok(finish) => Try::Done(finish),
            Err(fault) => Try::Failed(fault),
        }
    }

    async fn tell(&mut self, deltas: &mut Vec<Delta>) {
        for delta in deltas.drain(..) {
            self.shown |= delta.is_seen();
            self.out.send(Ok(delta)).await;
        }
    }

    /// Where the model is not known: what is like it.
    async fn with_near_names(&self, ask: &Ask, mut fault: Fault) -> Fault {
        if let (FaultKind::ModelNotFound { near }, Some(url)) = (&mut fault.kind, &ask.models) {
            let list = timeout(EPILOGUE, crate::openai::models::fetch(self.line, url)).await;
            if let Ok(Ok(models)) = list {
                *near = nearest(&self.line.about.model, models.into_iter().map(|model| model.id));
            }
        }
        fault
    }
}

fn nearest(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<(f64, String)> = names
        .map(|name| (strsim::jaro_winkler(wanted, &name), name))
        .filter(|(like, _)| *like > 0.7)
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    all.into_iter().map(|(_, name)| name).take(3).collect()
}

/// The pause before the next try: what the provider asks for, or twice the last one; and a little more, so that many who
/// wait do not come back at once.
fn pause(limits: &Limits, attempt: u32, asked: Option<Duration>) -> Duration {
    let own = limits.pause.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(limits.longest_pause);
    match asked {
        // A provider may ask for any time; one that is too long is not waited for.
        Some(asked) => asked.saturating_add(limits.pause.mul_f64(chance() / 2.0)),
        None => own.mul_f64(0.5 + chance() / 2.0),
    }
}

/// From 0 to 1.
fn chance() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    // Each `RandomState` has keys of its own; no more chance than that is needed here.
    let bits = RandomState::new().hash_one(Instant::now());
    f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

pub(crate) fn not_sent(error: &reqwest::Error) -> Fault {
    let why = cause(error);
    Fault::of(if error.is_timeout() && !error.is_connect() {
        FaultKind::Broken { why }
    } else if let Some(why) = causes(error).find_map(untrusted) {
        FaultKind::Untrusted { why }
    } else {
        let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
        FaultKind::Unreachable { refused: causes(error).any(refused), why }
    })
}

/// The errors of input and output that led to this one.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &std::io::Error> {
    let first: &dyn std::error::Error = error;
    std::iter::successors(Some(first), |error| error.source())
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
}

/// What is wrong with the server's certificate, if that is why.
fn untrusted(error: &std::io::Error) -> Option<String> {
    let inner = error.get_ref()?;
    if let Some(wrapped) = inner.downcast_ref::<std::io::Error>() {
        return untrusted(wrapped);
    }
    let tls = inner.downcast_ref::<rustls::Error>()?;
    matches!(tls, rustls::Error::InvalidCertificate(_)).then(|| tls.to_string())
}

fn timed_out(stage: Stage, limit: Duration) -> Fault {
    Fault::of(FaultKind::TimedOut { stage, seconds: limit.as_secs_f64().ceil() as u64 })
}

pub(crate) fn no_token(error: SignInError) -> Fault {
    let why = error.to_string();
    Fault::of(match error {
        SignInError::Expired(_) => FaultKind::SignedOut,
        SignInError::Refused(_) => FaultKind::BadKey,
        SignInError::Unreachable { .. } => FaultKind::Unreachable { why, refused: false },
    })
}

/// Reads an answer that is an error, as far as that is worth it.
pub(crate) async fn error_answer(mut response: Response) -> Fault {
    let status = response.status().as_u16();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let retry_after = header(RETRY_AFTER).and_then(|value| wait_of(&value, header(DATE).as_deref()));
    if (300..400).contains(&status) {
        let to = header(LOCATION).map(|to| to.split(['?', '#']).next().unwrap_or_default().to_owned());
        return Fault { http: Some(status), ..Fault::of(FaultKind::Moved { to }) };
    }
    let mut body = Vec::new();
    let read = read_into(&mut response, &mut body);
    let _ = timeout(EPILOGUE, read).await;
    Fault::from_answer(status, retry_after, &body)
}

/// `Retry-After` (RFC 9110, 10.2.3): seconds, or a date, which counts from the server's own if it says that.
fn wait_of(value: &str, server_now: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = server_now.and_then(|now| httpdate::parse_http_date(now).ok()).unwrap_or_else(SystemTime::now);
    // A moment that is over means at once.
    Some(httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default())
}

async fn read_into(response: &mut Response, body: &mut Vec<u8>) {
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ERROR_BODY {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let now = Some("Sat, 21 Nov 2026 23:30:00 GMT");
        for (value, expected) in [
            ("7", Some(7)),
            (" 120 ", Some(120)),
            ("Sat, 21 Nov 2026 23:30:42 GMT", Some(42)),
            ("Sat, 21 Nov 2026 23:29:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(wait_of(value, now), expected.map(Duration::from_secs), "{value}");
        }
    }
}
