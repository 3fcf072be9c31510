//! From a fault to a code, a sentence and a way out.
//!
//! Invariant: pure; the sentence is ours and says whom it is about, the provider's own words stand in the detail. No
//! secret that we know is in either.

use lectern_core::{ModelError, ModelErrorCode};
use serde_json::Value;

use crate::fault::{Fault, FaultKind, Stage};
use crate::transport::way_to;

/// What a sentence is about.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The model, as the provider names it.
    pub(crate) model: String,
    /// The provider's host.
    pub(crate) host: String,
    /// Whether the address is this computer.
    pub(crate) here: bool,
    /// The location, at Vertex AI.
    pub(crate) location: Option<String>,
    /// The proxy on the way.
    pub(crate) proxy: Option<String>,
}

/// The code of a fault.
pub(crate) fn code_of(fault: &Fault) -> ModelErrorCode {
    if fault.broke_off {
        return ModelErrorCode::Incomplete;
    }
    match &fault.kind {
        FaultKind::SignedOut | FaultKind::BadKey | FaultKind::KeyMissing | FaultKind::Forbidden { .. } => {
            ModelErrorCode::Unauthorized
        }
        FaultKind::ApiDisabled { .. } | FaultKind::BillingDisabled => ModelErrorCode::NotEnabled,
        FaultKind::NotAvailableHere | FaultKind::WrongLocation => ModelErrorCode::NotAvailableHere,
        FaultKind::ModelNotFound { .. } => ModelErrorCode::ModelNotFound,
        FaultKind::Busy => ModelErrorCode::RateLimited,
        FaultKind::QuotaExhausted { .. } => ModelErrorCode::QuotaExhausted,
        FaultKind::TooLong => ModelErrorCode::ContextFull,
        FaultKind::BadRequest | FaultKind::CannotAsk { .. } => ModelErrorCode::BadRequest,
        FaultKind::Blocked { .. } | FaultKind::Withheld { .. } | FaultKind::Filtered { .. } => {
            ModelErrorCode::Blocked
        }
        FaultKind::MalformedCall { .. } => ModelErrorCode::MalformedCall,
        FaultKind::Empty => ModelErrorCode::EmptyAnswer,
        FaultKind::TimedOut { .. } | FaultKind::Unreachable { .. } | FaultKind::Untrusted { .. } => {
            ModelErrorCode::Unreachable
        }
        FaultKind::Overloaded
        | FaultKind::UnknownEnd { .. }
        | FaultKind::Broken { .. }
        | FaultKind::NoAnswer { .. }
        | FaultKind::Moved { .. }
        | FaultKind::Unknown => ModelErrorCode::Provider,
    }
}

/// The error that the turn gets.
pub(crate) fn error_of(fault: &Fault, about: &About, secret: Option<&str>) -> ModelError {
    let mut message = sentence(fault, about);
    let mut detail = serde_json::to_value(fault).unwrap_or_default();
    let mut hint = way_out(fault, about);
    if let Some(secret) = secret.filter(|secret| secret.len() >= 4) {
        message = message.replace(secret, "•••");
        hint = hint.map(|hint| hint.replace(secret, "•••"));
        mask(&mut detail, secret);
    }
    ModelError { code: code_of(fault), message, hint, detail: Some(detail) }
}

fn mask(value: &mut Value, secret: &str) {
    match value {
        Value::String(text) if text.contains(secret) => *text = text.replace(secret, "•••"),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, secret)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mask(field, secret)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What happened, a lowercase fragment.
pub(crate) fn sentence(fault: &Fault, about: &About) -> String {
    let About { model, host, .. } = about;
    let what = match &fault.kind {
        FaultKind::SignedOut => format!("{host} does not accept the login"),
        FaultKind::BadKey => format!("{host} does not accept the key"),
        FaultKind::KeyMissing => format!("{host} asks for a key"),
        FaultKind::Forbidden { permission: Some(permission), .. } => {
            format!("the account may not use `{model}`: it lacks the permission `{permission}`")
        }
        FaultKind::Forbidden { permission: None, .. } => format!("the account may not use `{model}`"),
        FaultKind::ApiDisabled { service, .. } => {
            let service = service.as_deref().unwrap_or(host);
            format!("the project has not switched on {service}")
        }
        FaultKind::BillingDisabled => "the project has no billing account".to_owned(),
        FaultKind::NotAvailableHere => format!("{host} does not offer `{model}` here"),
        FaultKind::WrongLocation => match &about.location {
            Some(location) => format!("`{location}` is no location that {host} knows"),
            None => format!("{host} does not know the address that was asked for"),
        },
        FaultKind::ModelNotFound { .. } => match &about.location {
            Some(location) => format!("there is no model `{model}` at {host} in `{location}`"),
            None => format!("there is no model `{model}` at {host}"),
        },
        FaultKind::Busy => format!("{host} asks to wait: too many requests"),
        FaultKind::QuotaExhausted { quota: Some(quota) } => {
            format!("the quota for `{model}` is used up ({quota})")
        }
        FaultKind::QuotaExhausted { quota: None } => format!("the quota for `{model}` is used up"),
        FaultKind::Overloaded => format!("{host} is overloaded or failed"),
        FaultKind::TooLong => format!("the conversation is too long for `{model}`"),
        FaultKind::BadRequest => format!("{host} refused the request{}", quoted(fault)),
        FaultKind::Blocked { reason } => format!("{host} blocked the question ({})", reason.as_str()),
        FaultKind::Withheld { finish } => format!("`{model}` withheld its answer ({})", finish.as_str()),
        FaultKind::Filtered { finish } => format!("{host} withheld the answer ({})", finish.as_str()),
        FaultKind::MalformedCall { finish } => {
            format!("`{model}` called a tool in a way that can't be read ({})", finish.as_str())
        }
        FaultKind::Empty => format!("`{model}` answered nothing"),
        FaultKind::UnknownEnd { word } => {
            let word: String = word.chars().take(60).collect();
            format!("the answer of `{model}` ended for a reason that is not known here ({word})")
        }
        FaultKind::Broken { why } => format!("the answer of {host} broke off: {why}"),
        FaultKind::TimedOut { seconds, .. } => format!("{host} said nothing for {seconds} s"),
        FaultKind::Unreachable { why, .. } => {
            format!("{} can't be reached: {why}", way_to(host, about.proxy.as_deref()))
        }
        FaultKind::Untrusted { why } => format!("the certificate of {host} is not trusted: {why}"),
        FaultKind::NoAnswer { html: true } => {
            format!("a page of HTML came from {host} in place of an answer")
        }
        FaultKind::NoAnswer { html: false } => format!("what came from {host} is no answer of a model"),
        FaultKind::Moved { to: Some(to) } => format!("{host} points to another address: {to}"),
        FaultKind::Moved { to: None } => format!("{host} points to another address"),
        FaultKind::CannotAsk { why } => why.clone(),
        FaultKind::Unknown => format!("{host} reported an error{}", quoted(fault)),
    };
    if fault.broke_off { format!("the answer is incomplete: {what}") } else { what }
}

/// The provider's own words, where ours say little.
fn quoted(fault: &Fault) -> String {
    let message = fault.said.as_ref().and_then(|said| said.message.as_deref());
    let message = message.map(|message| message.split_whitespace().collect::<Vec<_>>().join(" "));
    message.map(|message| format!(": {}", message.chars().take(300).collect::<String>())).unwrap_or_default()
}

fn way_out(fault: &Fault, about: &About) -> Option<String> {
    let link = || fault.said.as_ref().and_then(|said| said.links.first()).map(|url| format!(" See {url}"));
    if fault.broke_off {
        return Some("What came is kept. Try again for a whole answer.".to_owned());
    }
    let way = match &fault.kind {
        FaultKind::SignedOut => "Sign in again.".to_owned(),
        FaultKind::BadKey => "Enter a key that is valid for this service.".to_owned(),
        FaultKind::KeyMissing => "Enter a key for it in the settings.".to_owned(),
        FaultKind::Forbidden { .. } if about.location.is_some() => {
            "Ask the project's owner for the role Vertex AI User (roles/aiplatform.user), or choose another project."
                .to_owned()
        }
        FaultKind::Forbidden { .. } => "Check what this key or account may use.".to_owned(),
        FaultKind::ApiDisabled { link: Some(link), .. } => {
            format!("Switch it on at {link}, wait a few minutes, then try again.")
        }
        FaultKind::ApiDisabled { link: None, .. } => {
            "Switch it on in the Google Cloud console, wait a few minutes, then try again.".to_owned()
        }
        FaultKind::BillingDisabled => "Give the project a billing account in the Google Cloud console.".to_owned(),
        FaultKind::NotAvailableHere => "Choose another location or another provider.".to_owned(),
        FaultKind::WrongLocation if about.location.is_some() => {
            "Choose another location, e.g. `global`.".to_owned()
        }
        FaultKind::WrongLocation => "Check the address in the settings.".to_owned(),
        FaultKind::ModelNotFound { near } if near.is_empty() => {
            "Choose another model; the list in the settings can be fetched anew.".to_owned()
        }
        FaultKind::ModelNotFound { near } => format!("Names that are like it: {}.", near.join(", ")),
        FaultKind::Busy => match fault.wait {
            Some(wait) => format!("Wait {} s, then try again.", wait.as_secs_f64().ceil()),
            None => "Wait a minute, then try again.".to_owned(),
        },
        FaultKind::QuotaExhausted { .. } => {
            format!("Wait until it begins anew, ask for more, or choose another model.{}", link().unwrap_or_default())
        }
        FaultKind::TooLong => "Begin a new conversation, or choose a model with a larger context.".to_owned(),
        FaultKind::BadRequest | FaultKind::CannotAsk { .. } => {
            "Choose another model, or change the settings of this one.".to_owned()
        }
        FaultKind::Blocked { .. } | FaultKind::Withheld { .. } | FaultKind::Filtered { .. } => {
            "Ask in other words, or choose another model.".to_owned()
        }
        FaultKind::Unreachable { refused: true, .. } if about.here => {
            format!("Start the server that should listen at {}.", about.host)
        }
        FaultKind::Unreachable { .. } if about.proxy.is_some() => {
            "Check the proxy (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY or that of the system), then try again.".to_owned()
        }
        FaultKind::Unreachable { .. } => "Check the connection and the address, then try again.".to_owned(),
        FaultKind::Untrusted { .. } => {
            "If it is a server of your own, add its certificate to those of the system or name its file in SSL_CERT_FILE; else do not use it in this network.".to_owned()
        }
        FaultKind::TimedOut { stage: Stage::Waiting, .. } if about.here => {
            "It may still be loading the model. Try again, or choose a smaller model.".to_owned()
        }
        FaultKind::NoAnswer { .. } | FaultKind::Moved { .. } => {
            "Check the address in the settings, and whether a proxy or a sign-in page is in the way.".to_owned()
        }
        FaultKind::Overloaded
        | FaultKind::MalformedCall { .. }
        | FaultKind::Empty
        | FaultKind::UnknownEnd { .. }
        | FaultKind::Broken { .. }
        | FaultKind::TimedOut { .. }
        | FaultKind::Unknown => "Try again in a moment.".to_owned(),
    };
    Some(way)
}
