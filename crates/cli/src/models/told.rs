//! Providers, logins and tests of models in words.
//!
//! Invariant: nothing is asked; no secret comes this far.

use lectern_app::view::{FoundLogin, LoginView, ModelTest, ProviderView, Reach, SecretPlace, TestedReply};

use super::words::line;
use crate::output::one_line;

/// Characters of a reply that a test shows.
const SHOWN: usize = 200;

/// A provider in one line.
pub fn provider_line(provider: &ProviderView) -> String {
    let login = match &provider.login {
        LoginView::NotNeeded => "asked as nobody".to_owned(),
        LoginView::SignedOut => "signed out".to_owned(),
        LoginView::SignedIn { account, place, from, .. } => {
            let who = account.as_deref().map(|account| format!(" as {account}")).unwrap_or_default();
            let place = match place {
                SecretPlace::Keyring => "secret in the keyring".to_owned(),
                SecretPlace::Session => "secret in memory until Lectern ends".to_owned(),
                SecretPlace::Environment => {
                    format!("secret in {}", from.as_deref().unwrap_or("the environment"))
                }
                SecretPlace::File => format!("credentials in {}", from.as_deref().unwrap_or("a file")),
                SecretPlace::Machine => "account of this machine".to_owned(),
            };
            format!("signed in{who}, {place}")
        }
    };
    let reach = match provider.reach {
        Reach::ThisComputer => "this computer",
        Reach::PrivateNetwork => "your network",
        Reach::Internet => "the internet",
    };
    format!("{}  {}  {} ({reach})  {login}", provider.id, provider.name, provider.address)
}

/// Credentials of this computer in one line.
pub fn found_line(found: &FoundLogin) -> String {
    let kind = match found.kind.as_deref() {
        Some("authorized_user") => "a person's login",
        Some("service_account") => "a service account",
        Some(_) | None => "a file that can't be used",
    };
    let account = found.account.as_deref().map(|account| format!(" of {account}")).unwrap_or_default();
    let project = found.project.as_deref().map(|project| format!(", project {project}")).unwrap_or_default();
    let from = found.variable.as_deref().map(|name| format!(" (named by {name})")).unwrap_or_default();
    format!("{kind}{account}{project}, in {}{from}", found.path)
}

/// What a test found.
pub fn print_test(tested: &ModelTest) {
    line(&format!("{}", tested.model));
    reply("answer", &tested.answer);
    match &tested.call {
        Some(call) => reply("tool call", call),
        None => line("tool call  not tried"),
    }
}

fn reply(what: &str, reply: &TestedReply) {
    let mark = if reply.passed { "passed" } else { "failed" };
    let usage = &reply.usage;
    line(&format!(
        "{what}  {mark} in {:.1} s; {} tokens read ({} of them kept by the provider), {} written ({} thinking)",
        f64::from(reply.total_ms) / 1_000.0,
        usage.prompt_tokens,
        usage.reused_tokens,
        usage.generated_tokens,
        usage.thinking_tokens.unwrap_or(0),
    ));
    if !reply.text.trim().is_empty() {
        line(&format!("    “{}”", one_line(reply.text.trim(), SHOWN)));
    }
    for call in &reply.calls {
        line(&format!("    {}({})", call.tool, one_line(&call.arguments, SHOWN)));
    }
    if let Some(problem) = &reply.problem {
        line(&format!("    {}", problem.message));
        problem.hint.iter().for_each(|hint| line(&format!("    {hint}")));
    }
}
