//! Why there is no reply, read from a provider's codes.
//!
//! Shapes: Google's `{"error": {code, status, message, details}}` with `ErrorInfo`, `QuotaFailure`, `RetryInfo` and
//! `Help` (AIP-193), alone, in an array, or in the middle of a stream; OpenAI's `{"error": {message, type, code,
//! param}}`; OAuth's `{"error": "invalid_grant", "error_description": …}` (RFC 6749, 5.2); the shapes of servers that
//! imitate them; pages of HTML; plain text.
//!
//! Invariant: pure; no sentence of a provider is compared with anything, for servers translate them.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::outcome::{BlockReason, Ending, Finish};

/// Characters of a provider's words that are kept.
const SHOWN: usize = 2_000;

/// Why there is no reply, or no whole one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    /// What kind.
    #[serde(flatten)]
    pub kind: FaultKind,
    /// The HTTP status, where there was one.
    pub http: Option<u16>,
    /// What the provider said.
    pub said: Option<Box<Said>>,
    /// How long the provider asks to wait.
    #[serde(serialize_with = "millis", rename = "wait_ms")]
    pub wait: Option<Duration>,
    /// Whether a part of the reply had come before.
    pub broke_off: bool,
}

/// Kinds of faults.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// The login has expired, or nobody is signed in.
    SignedOut,
    /// The key is none, or is not valid for this.
    BadKey,
    /// The endpoint asks for a key, and none was given.
    KeyMissing,
    /// Signed in, but not allowed.
    Forbidden {
        /// The permission that is missing.
        permission: Option<String>,
        /// On what.
        resource: Option<String>,
    },
    /// The project has not switched the API on.
    ApiDisabled {
        /// Which.
        service: Option<String>,
        /// Where to switch it on.
        link: Option<String>,
    },
    /// The project has no billing.
    BillingDisabled,
    /// The provider does not serve people here, or not this at this location.
    NotAvailableHere,
    /// The address itself is unknown to the server; at Vertex AI, a location that is none.
    WrongLocation,
    /// No such model.
    ModelNotFound {
        /// Names that are like it.
        near: Vec<String>,
    },
    /// Too many requests in this minute, or too much load of one account.
    Busy,
    /// The quota is used up for a day or longer.
    QuotaExhausted {
        /// Which.
        quota: Option<String>,
    },
    /// The provider is overloaded or failed inside.
    Overloaded,
    /// The conversation is too long for the model.
    TooLong,
    /// The provider takes the request for wrong.
    BadRequest,
    /// The prompt was blocked.
    Blocked {
        /// Why.
        reason: BlockReason,
    },
    /// A reply was withheld before its first word.
    Withheld {
        /// Why.
        finish: Finish,
    },
    /// The same, at an OpenAI-compatible endpoint.
    Filtered {
        /// Why.
        finish: Ending,
    },
    /// The model wrote a call that its provider could not read, or that was not offered.
    MalformedCall {
        /// The model's own words for it.
        finish: Finish,
    },
    /// The reply ended without having begun.
    Empty,
    /// It ended for a reason that is not known here, in the provider's word.
    UnknownEnd {
        /// That word.
        word: String,
    },
    /// The connection broke, or the reply ended without its end.
    Broken {
        /// What happened.
        why: String,
    },
    /// Nothing came for too long.
    TimedOut {
        /// While what.
        stage: Stage,
        /// For how long.
        seconds: u64,
    },
    /// The server's certificate is not one that the system trusts.
    Untrusted {
        /// What is wrong with it.
        why: String,
    },
    /// No way to the provider.
    Unreachable {
        /// What is in the way.
        why: String,
        /// Nobody listens at the address.
        refused: bool,
    },
    /// What came is no answer of such a provider: a page of HTML, or something else.
    NoAnswer {
        /// Whether it is a page.
        html: bool,
    },
    /// The server names another address.
    Moved {
        /// Which.
        to: Option<String>,
    },
    /// The request can't be made for this provider.
    CannotAsk {
        /// Why.
        why: String,
    },
    /// Anything else.
    Unknown,
}

/// A part of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waiting for the first byte.
    Waiting,
    /// Reading.
    Reading,
    /// The whole.
    Total,
}

/// What a provider said about an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Said {
    /// Its number, e.g. 429.
    pub code: Option<i64>,
    /// Its word, e.g. `RESOURCE_EXHAUSTED`, or OpenAI's `code` or `type`.
    pub status: Option<String>,
    /// Its sentence, in any language.
    pub message: Option<String>,
    /// `ErrorInfo.reason`.
    pub reason: Option<String>,
    /// `ErrorInfo.metadata`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// `QuotaFailure.violations[].quotaId`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<String>,
    /// `Help.links[].url`, only those of the web.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// `RetryInfo.retryDelay`.
    #[serde(skip)]
    pub retry: Option<Duration>,
    /// Whether it was a page of HTML.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub html: bool,
    /// Whether it was no error of an API at all: a page, plain words, or what a web framework says of an unknown path.
    #[serde(skip)]
    pub plain: bool,
}

impl Fault {
    /// A fault of this kind, of which nothing more is known.
    pub fn of(kind: FaultKind) -> Self {
        Self { kind, http: None, said: None, wait: None, broke_off: false }
    }

    /// Reads an answer that is an error.
    pub(crate) fn from_answer(http: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let said = Said::read(body);
        let kind = kind_of(Some(http), &said);
        let wait = said.retry.or(retry_after);
        Self { kind, http: Some(http), said: Some(Box::new(said)), wait, broke_off: false }
    }

    /// Reads an error that stands in the middle of a good answer.
    pub(crate) fn from_stream(error: &Value) -> Self {
        let said = Said::from_json(error);
        let http =
            said.code.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
        let kind = kind_of(http, &said);
        Self { kind, http: None, wait: said.retry, said: Some(Box::new(said)), broke_off: false }
    }

    /// Whether the same request may be answered a moment later.
    pub fn is_passing(&self) -> bool {
        match &self.kind {
            FaultKind::Busy
            | FaultKind::Overloaded
            | FaultKind::MalformedCall { .. }
            | FaultKind::Empty
            | FaultKind::Broken { .. }
            | FaultKind::TimedOut { stage: Stage::Reading, .. } => true,
            FaultKind::Unreachable { refused, .. } => !refused,
            FaultKind::SignedOut
            | FaultKind::Untrusted { .. }
            | FaultKind::BadKey
            | FaultKind::KeyMissing
            | FaultKind::Forbidden { .. }
            | FaultKind::ApiDisabled { .. }
            | FaultKind::BillingDisabled
            | FaultKind::NotAvailableHere
            | FaultKind::WrongLocation
            | FaultKind::ModelNotFound { .. }
            | FaultKind::QuotaExhausted { .. }
            | FaultKind::TooLong
            | FaultKind::BadRequest
            | FaultKind::Blocked { .. }
            | FaultKind::Withheld { .. }
            | FaultKind::Filtered { .. }
            | FaultKind::UnknownEnd { .. }
            | FaultKind::TimedOut { .. }
            | FaultKind::NoAnswer { .. }
            | FaultKind::Moved { .. }
            | FaultKind::CannotAsk { .. }
            | FaultKind::Unknown => false,
        }
    }
}

fn kind_of(http: Option<u16>, said: &Said) -> FaultKind {
    by_reason(said).or_else(|| by_word(http, said)).unwrap_or_else(|| by_number(http, said))
}

/// `ErrorInfo.reason` is the most exact thing that Google says.
fn by_reason(said: &Said) -> Option<FaultKind> {
    let of_metadata = |name: &str| said.metadata.get(name)?.as_str().map(str::to_owned);
    match said.reason.as_deref()? {
        "API_KEY_INVALID"
        | "API_KEY_SERVICE_BLOCKED"
        | "API_KEY_HTTP_REFERRER_BLOCKED"
        | "API_KEY_IP_ADDRESS_BLOCKED" => Some(FaultKind::BadKey),
        "ACCESS_TOKEN_EXPIRED" | "CREDENTIALS_MISSING" | "ACCESS_TOKEN_TYPE_UNSUPPORTED" => {
            Some(FaultKind::SignedOut)
        }
        "SERVICE_DISABLED" => Some(FaultKind::ApiDisabled {
            service: of_metadata("service"),
            link: of_metadata("activationUrl")
                .filter(|url| is_link(url))
                .or_else(|| said.links.first().cloned()),
        }),
        "BILLING_DISABLED" => Some(FaultKind::BillingDisabled),
        "IAM_PERMISSION_DENIED" => Some(FaultKind::Forbidden {
            permission: of_metadata("permission"),
            resource: of_metadata("resource"),
        }),
        "LOCATION_POLICY_VIOLATED" | "LOCATION_ORG_POLICY_VIOLATED" => Some(FaultKind::NotAvailableHere),
        "RATE_LIMIT_EXCEEDED" | "RESOURCE_QUOTA_EXCEEDED" => Some(quota(said)),
        _ => None,
    }
}

/// Google's status, OpenAI's code or type, OAuth's error.
fn by_word(http: Option<u16>, said: &Said) -> Option<FaultKind> {
    match said.status.as_deref()? {
        "RESOURCE_EXHAUSTED" | "rate_limit_exceeded" | "rate_limit_error" => Some(quota(said)),
        // Groq: what the model wrote was no call.
        "tool_use_failed" => Some(FaultKind::MalformedCall { finish: Finish::of("tool_use_failed") }),
        "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" => {
            Some(FaultKind::QuotaExhausted { quota: said.status.clone() })
        }
        "UNAUTHENTICATED" | "invalid_grant" => Some(FaultKind::SignedOut),
        "invalid_api_key" | "authentication_error" => Some(FaultKind::BadKey),
        "PERMISSION_DENIED" | "permission_error" => {
            Some(FaultKind::Forbidden { permission: None, resource: None })
        }
        "FAILED_PRECONDITION" | "unsupported_country_region_territory" => Some(FaultKind::NotAvailableHere),
        "NOT_FOUND" | "model_not_found" | "not_found_error" => {
            Some(FaultKind::ModelNotFound { near: Vec::new() })
        }
        "context_length_exceeded" | "exceed_context_size_error" | "request_too_large" => {
            Some(FaultKind::TooLong)
        }
        "content_filter" | "content_policy_violation" => {
            Some(FaultKind::Filtered { finish: Ending::ContentFilter })
        }
        "UNAVAILABLE" | "INTERNAL" | "DEADLINE_EXCEEDED" | "ABORTED" | "CANCELLED" | "UNKNOWN"
        | "server_error" | "overloaded_error" | "engine_overloaded" => Some(FaultKind::Overloaded),
        "INVALID_ARGUMENT" | "OUT_OF_RANGE" if http.is_none_or(|http| http < 500) => {
            Some(FaultKind::BadRequest)
        }
        _ => None,
    }
}

fn by_number(http: Option<u16>, said: &Said) -> FaultKind {
    match http {
        Some(401) => FaultKind::SignedOut,
        Some(402) => FaultKind::QuotaExhausted { quota: None },
        Some(403) => FaultKind::Forbidden { permission: None, resource: None },
        // Google answers an unknown path, as a wrong location makes one, with a page; other servers with few words. A
        // model that is not there is told with an error of the API.
        Some(404 | 405) if said.plain => FaultKind::WrongLocation,
        Some(404) => FaultKind::ModelNotFound { near: Vec::new() },
        Some(413) => FaultKind::TooLong,
        Some(429) => quota(said),
        Some(408 | 409 | 425 | 499 | 500..=599) => FaultKind::Overloaded,
        Some(400..=498) => FaultKind::BadRequest,
        Some(_) | None if said.html => FaultKind::NoAnswer { html: true },
        Some(_) | None => FaultKind::Unknown,
    }
}

fn quota(said: &Said) -> FaultKind {
    let limit = said.metadata.get("quota_limit").and_then(Value::as_str);
    let ids = said.quotas.iter().map(String::as_str).chain(limit);
    // An identifier, not a sentence: `GenerateRequestsPerDayPerProjectPerModel`.
    let mut long = ids.filter(|id| ["PerDay", "PerMonth", "PerWeek"].iter().any(|span| id.contains(span)));
    match long.next() {
        Some(id) => FaultKind::QuotaExhausted { quota: Some(id.to_owned()) },
        None => FaultKind::Busy,
    }
}

impl Said {
    /// Reads the body of an error.
    pub(crate) fn read(body: &[u8]) -> Self {
        if let Ok(value) = serde_json::from_slice::<Value>(body) {
            return Self::from_json(&value);
        }
        // Servers send an error as the only event of a stream too.
        let text = String::from_utf8_lossy(body);
        let event = text.lines().find_map(|line| line.trim_start().strip_prefix("data:"));
        if let Some(value) = event.and_then(|data| serde_json::from_str::<Value>(data.trim()).ok()) {
            return Self::from_json(&value);
        }
        let html = text.trim_start().starts_with('<');
        let words = if html { title(&text) } else { Some(text.trim()) };
        let message = words.filter(|words| !words.is_empty()).map(shown);
        Self { message, html, plain: true, ..Self::default() }
    }

    /// Reads any of the shapes in JSON.
    pub(crate) fn from_json(value: &Value) -> Self {
        if let Value::Array(items) = value {
            return items.first().map(Self::from_json).unwrap_or_default();
        }
        match value.get("error") {
            Some(Value::Object(error)) => Self::from_error(error),
            Some(Value::String(word)) => Self::from_words(value, word),
            Some(Value::Array(errors)) if !errors.is_empty() => {
                errors.first().map(|error| Self::from_json(&json!({ "error": error }))).unwrap_or_default()
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => match value {
                Value::Object(error) => Self::from_error(error),
                Value::String(text) => Self { message: Some(shown(text)), ..Self::default() },
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Self::default(),
            },
        }
    }

    /// `{"error": "invalid_grant", "error_description": "…"}`, or `{"error": "a sentence"}` as Ollama writes it.
    fn from_words(value: &Value, word: &str) -> Self {
        let is_word = !word.contains(char::is_whitespace);
        let described =
            value.get("error_description").or_else(|| value.get("message")).and_then(Value::as_str);
        Self {
            status: is_word.then(|| shown(word)),
            message: described.or((!is_word).then_some(word)).map(shown),
            code: value.as_object().and_then(number_of),
            ..Self::default()
        }
    }

    fn from_error(error: &Map<String, Value>) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let number = number_of(error);
        let message = text("message").map(str::to_owned).or_else(|| {
            // Mistral and FastAPI: a list of what is wrong where.
            let more = ["detail", "message"].iter().find_map(|name| error.get(*name));
            more.filter(|more| !more.is_null())
                .map(|more| more.as_str().map_or_else(|| more.to_string(), str::to_owned))
        });
        let word = |name: &str| text(name).filter(|word| word.trim().parse::<f64>().is_err());
        let status = word("status").or_else(|| word("code")).or_else(|| word("type"));
        let mut said = Self {
            code: number,
            status: status.map(shown),
            message: message.as_deref().map(shown),
            plain: error.get("detail").is_some() && status.is_none(),
            ..Self::default()
        };
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            said.take_detail(detail);
        }
        said
    }

    fn take_detail(&mut self, detail: &Value) {
        let kind = detail.get("@type").and_then(Value::as_str).unwrap_or_default();
        let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(shown);
        let list = |name: &str| detail.get(name).and_then(Value::as_array).into_iter().flatten();
        match kind.rsplit_once('.').map_or(kind, |(_, last)| last) {
            "ErrorInfo" => {
                self.reason = text(detail, "reason");
                self.metadata =
                    detail.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
            }
            "QuotaFailure" => self.quotas.extend(list("violations").filter_map(|one| text(one, "quotaId"))),
            "RetryInfo" => self.retry = text(detail, "retryDelay").and_then(|delay| duration(&delay)),
            "Help" => {
                let urls = list("links").filter_map(|one| text(one, "url"));
                self.links.extend(urls.filter(|url| is_link(url)));
            }
            // `DebugInfo` repeats keys that are wrong; `LocalizedMessage` the sentence.
            _ => {}
        }
    }
}

/// The number of an error, wherever it stands and whether it is written as a number or as a text.
fn number_of(error: &Map<String, Value>) -> Option<i64> {
    let fields = ["code", "status", "status_code", "statusCode", "http_status", "http_code"];
    fields.iter().filter_map(|name| error.get(*name)).find_map(|value| match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    })
}

/// Whether a field says anything: servers write an `error` of `false`, an empty text or an empty object too. Where the field
/// stands `alone`, an object without a value in it is one all the same.
pub(crate) fn says_something(error: &Value, alone: bool) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(|item| says_something(item, false)),
        Value::Object(fields) => {
            fields.values().any(|field| says_something(field, false)) || (alone && !fields.is_empty())
        }
    }
}

/// `34.4s`, as protobuf writes a duration in JSON.
fn duration(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}

fn is_link(url: &str) -> bool {
    url.starts_with("https://")
}

fn title(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("<title>")?;
    rest.split_once("</title>").map(|(title, _)| title.trim())
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

fn millis<S: serde::Serializer>(wait: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
}
