//! Providers and their models in the settings: add, change, remove, put back.
//!
//! Invariant: what is added is checked first; nothing is asked over the network.

use lectern_cloud::gemini::{is_location, is_project};
use lectern_core::ModelId;

use super::view::usual_facts;
use super::waits::check_waits;
use super::{address, address_of, sign_ins, unknown};
use crate::models::{free_named, is_taken};
use crate::settings::{ModelEntry, ModelOptions, ModelSource, ProviderEntry, RemoteEntry, Settings};
use crate::vaults::slug;
use crate::view::{Price, Problem, ProviderDraft, ProviderId, ProviderKind, RemoteDraft, SignInKind};

/// A provider that was taken out, with its models.
#[derive(Clone, Debug)]
pub(crate) struct RemovedEntry {
    pub(crate) provider: ProviderEntry,
    pub(crate) models: Vec<ModelEntry>,
    /// The chosen model, when it was one of them.
    pub(crate) chosen: Option<ModelId>,
}

/// Adds a provider.
pub(crate) fn add(settings: &mut Settings, draft: ProviderDraft) -> Result<ProviderEntry, Problem> {
    let usual = match draft.kind {
        ProviderKind::OpenaiCompatible if draft.sign_in.is_none() => SignInKind::None,
        kind => sign_ins(kind).first().copied().unwrap_or(SignInKind::None),
    };
    let blank = ProviderEntry {
        id: ProviderId(String::new()),
        kind: draft.kind,
        name: None,
        project: None,
        location: None,
        base_url: None,
        sign_in: usual,
        login: None,
        options: draft.options.clone(),
        other: serde_json::Map::new(),
    };
    let mut entry = drafted(blank, draft)?;
    let stem = slug(&entry.name.clone().unwrap_or_else(|| match entry.kind {
        ProviderKind::Vertex => "vertex".to_owned(),
        ProviderKind::VertexExpress => "vertex-express".to_owned(),
        ProviderKind::Gemini => "gemini".to_owned(),
        ProviderKind::OpenaiCompatible => super::name_of(&entry),
    }));
    let taken = |id: &str| settings.providers.iter().any(|known| known.id.0 == id);
    entry.id = ProviderId(free_named(&stem, "provider", taken));
    settings.providers.push(entry.clone());
    Ok(entry)
}

/// Changes a provider. One that is asked elsewhere or otherwise from now on has to be signed in to again: a secret
/// belongs to the address that it was given for.
pub(crate) fn change(
    settings: &mut Settings,
    id: &ProviderId,
    draft: ProviderDraft,
) -> Result<ProviderEntry, Problem> {
    let entry = settings.providers.iter_mut().find(|entry| entry.id == *id).ok_or_else(|| unknown(id))?;
    if draft.kind != entry.kind {
        return Err(Problem::new("bad_provider", "what is spoken at a provider can't be changed")
            .hint("Add another provider."));
    }
    let before = ProviderEntry { name: None, project: None, location: None, base_url: None, ..entry.clone() };
    let mut changed = drafted(before, draft)?;
    let origin = |entry: &ProviderEntry| address_of(entry).ok().map(|url| url.origin());
    if origin(&changed) != origin(entry) || changed.sign_in != entry.sign_in {
        changed.login = None;
    }
    *entry = changed.clone();
    Ok(changed)
}

/// The entry as the draft wants it.
fn drafted(entry: ProviderEntry, draft: ProviderDraft) -> Result<ProviderEntry, Problem> {
    let text = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let base_url = text(draft.base_url);
    let base_url = base_url.map(|base| address::read(&base)).transpose()?;
    let entry = ProviderEntry {
        name: text(draft.name),
        project: text(draft.project),
        location: text(draft.location),
        base_url: base_url.map(|url| url.to_string().trim_end_matches('/').to_owned()),
        sign_in: draft.sign_in.unwrap_or(entry.sign_in),
        options: draft.options,
        ..entry
    };
    if !sign_ins(entry.kind).contains(&entry.sign_in) {
        return Err(Problem::new("bad_provider", "this kind of provider can't be signed in to in this way"));
    }
    check_names(&entry)?;
    check_waits(&entry.options)?;
    let url = address_of(&entry)?;
    if entry.sign_in != SignInKind::None {
        address::fit_for_secrets(&url)?;
    }
    Ok(entry)
}

/// Both become parts of addresses.
fn check_names(entry: &ProviderEntry) -> Result<(), Problem> {
    let bad = |what: &str, value: &str| {
        Problem::new("bad_provider", format!("`{value}` is no {what}")).hint(
            "Copy it from the Google Cloud console, e.g. project `my-project-123`, location `europe-west1`.",
        )
    };
    if let Some(location) = entry.location.as_deref().filter(|text| !is_location(text)) {
        return Err(bad("location", location));
    }
    if let Some(project) = entry.project.as_deref().filter(|text| !is_project(text)) {
        return Err(bad("project", project));
    }
    Ok(())
}

/// Takes a provider out, and its models.
pub(crate) fn remove(settings: &mut Settings, id: &ProviderId) -> Result<RemovedEntry, Problem> {
    let place = settings.providers.iter().position(|entry| entry.id == *id).ok_or_else(|| unknown(id))?;
    let provider = settings.providers.remove(place);
    let of_it = |entry: &ModelEntry| entry.remote().is_some_and(|remote| remote.provider == *id);
    let (models, kept) = std::mem::take(&mut settings.models).into_iter().partition(of_it);
    settings.models = kept;
    let models: Vec<ModelEntry> = models;
    let chosen = settings.model.clone().filter(|id| models.iter().any(|entry| entry.id == *id));
    if chosen.is_some() {
        settings.model = None;
    }
    Ok(RemovedEntry { provider, models, chosen })
}

/// Puts a provider back, and its models; ids that others have now are changed.
pub(crate) fn put_back(settings: &mut Settings, removed: RemovedEntry) -> ProviderEntry {
    let RemovedEntry { provider, models, chosen } = removed;
    if !settings.providers.iter().any(|entry| entry.id == provider.id) {
        settings.providers.push(provider.clone());
    }
    for entry in models {
        let (id, before) = (free_id(settings, entry.id.as_str()), entry.id.clone());
        settings.models.push(ModelEntry { id: id.clone(), ..entry });
        if chosen.as_ref() == Some(&before) {
            settings.model = Some(id);
        }
    }
    provider
}

/// Adds a model of a provider to the list, or finds it there.
pub(crate) fn add_model(settings: &mut Settings, draft: RemoteDraft) -> Result<ModelEntry, Problem> {
    let remote = drafted_model(settings, draft)?;
    let same =
        |entry: &&ModelEntry| entry.remote().is_some_and(|known| known.is(&remote.provider, &remote.model));
    if let Some(known) = settings.models.iter().find(same) {
        return Ok(known.clone());
    }
    let last = remote.model.rsplit('/').next().unwrap_or(&remote.model);
    let id = free_id(settings, &slug(remote.name.as_deref().unwrap_or(last)));
    let entry = ModelEntry { id, source: ModelSource::Remote(remote), options: ModelOptions::default() };
    settings.models.push(entry.clone());
    Ok(entry)
}

/// Changes what the user says of a model: its name, price and facts.
pub(crate) fn change_model(settings: &mut Settings, id: &ModelId, draft: RemoteDraft) -> Result<(), Problem> {
    let new = drafted_model(settings, draft)?;
    let entry = settings.models.iter_mut().find(|entry| entry.id == *id);
    let remote = entry.and_then(ModelEntry::remote_mut).ok_or_else(|| crate::models::unknown(id))?;
    *remote = RemoteEntry { other: std::mem::take(&mut remote.other), ..new };
    Ok(())
}

fn drafted_model(settings: &Settings, draft: RemoteDraft) -> Result<RemoteEntry, Problem> {
    let RemoteDraft { provider, model, name, price, facts } = draft;
    let entry = settings.providers.iter().find(|entry| entry.id == provider);
    let kind = entry.ok_or_else(|| unknown(&provider))?.kind;
    let model = model.trim().to_owned();
    if model.is_empty() || model.chars().any(char::is_control) {
        return Err(Problem::new("bad_model_name", "a model needs a name"));
    }
    check_price(price.as_ref())?;
    let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    // What holds for all of a kind is shown with the rest, and is no word of the user's.
    let facts = facts.beyond(usual_facts(kind));
    Ok(RemoteEntry { name, price, facts, ..RemoteEntry::new(provider, &model) })
}

fn check_price(price: Option<&Price>) -> Result<(), Problem> {
    let Some(price) = price else { return Ok(()) };
    let amounts = [Some(price.input), Some(price.output), price.cached];
    let fine = amounts.into_iter().flatten().all(|amount| amount.is_finite() && (0.0..1e6).contains(&amount));
    if !fine || price.currency.trim().is_empty() || price.currency.chars().count() > 8 {
        return Err(Problem::new("bad_price", "a price is two amounts of 0 or more, and a currency")
            .hint("Per million tokens, e.g. 0.30 for what is read, 2.50 for what is written, EUR."));
    }
    Ok(())
}

fn free_id(settings: &Settings, stem: &str) -> ModelId {
    ModelId(free_named(stem, "model", |id| is_taken(settings, id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{ModelFacts, ProviderOptions};

    fn draft(kind: ProviderKind, base_url: Option<&str>) -> ProviderDraft {
        ProviderDraft {
            kind,
            name: None,
            project: None,
            location: None,
            base_url: base_url.map(str::to_owned),
            sign_in: None,
            options: ProviderOptions::default(),
        }
    }

    fn model(provider: &ProviderId, model: &str) -> RemoteDraft {
        let facts = ModelFacts::default();
        RemoteDraft { provider: provider.clone(), model: model.to_owned(), name: None, price: None, facts }
    }

    #[test]
    fn another_address_ends_the_login_and_another_name_does_not() {
        let mut settings = Settings::default();
        let kind = ProviderKind::OpenaiCompatible;
        let key = |base| ProviderDraft { sign_in: Some(SignInKind::Key), ..draft(kind, Some(base)) };
        let id = add(&mut settings, key("https://h.example/v1")).unwrap().id;
        let at = lectern_core::clock::now();
        let login = crate::settings::Login { account: None, project: None, agreed: None, at };
        settings.providers[0].login = Some(login);
        let named = ProviderDraft { name: Some("mine".into()), ..key("https://h.example/v2") };
        assert!(change(&mut settings, &id, named).unwrap().login.is_some());
        assert!(change(&mut settings, &id, key("https://other.example/v1")).unwrap().login.is_none());
        let problem = change(&mut settings, &id, key("http://other.example/v1")).unwrap_err();
        assert_eq!(problem.code, "secret_in_clear");
    }

    #[test]
    fn a_removed_provider_takes_its_models_along_and_brings_them_back() {
        let mut settings = Settings::default();
        let id = add(&mut settings, draft(ProviderKind::Gemini, None)).unwrap().id;
        let other = add(&mut settings, draft(ProviderKind::Gemini, None)).unwrap().id;
        assert_eq!((id.0.as_str(), other.0.as_str()), ("gemini", "gemini-2"));
        let entry = add_model(&mut settings, model(&id, "gemini-3.5-flash")).unwrap();
        assert_eq!(add_model(&mut settings, model(&id, "gemini-3.5-flash")).unwrap(), entry);
        add_model(&mut settings, model(&other, "gemini-3.5-flash")).unwrap();
        settings.model = Some(entry.id.clone());
        let before = settings.clone();
        let removed = remove(&mut settings, &id).unwrap();
        assert_eq!((settings.providers.len(), settings.models.len(), &settings.model), (1, 1, &None));
        put_back(&mut settings, removed);
        assert_eq!(settings.model, before.model);
        assert_eq!((settings.providers.len(), settings.models.len()), (2, 2));
    }

    #[test]
    fn only_what_the_user_knows_better_is_kept() {
        let mut settings = Settings::default();
        let id = add(&mut settings, draft(ProviderKind::Gemini, None)).unwrap().id;
        let entry = add_model(&mut settings, model(&id, "gemini-3.5-flash")).unwrap();
        let shown = ModelFacts { context_length: Some(9_000), ..usual_facts(ProviderKind::Gemini) };
        let change = RemoteDraft { facts: shown, ..model(&id, "gemini-3.5-flash") };
        change_model(&mut settings, &entry.id, change).unwrap();
        let kept = settings.models[0].remote().unwrap().facts;
        assert_eq!(kept, ModelFacts { context_length: Some(9_000), ..ModelFacts::default() });
        let blind = ModelFacts { vision: Some(false), ..shown };
        let change = RemoteDraft { facts: blind, ..model(&id, "gemini-3.5-flash") };
        change_model(&mut settings, &entry.id, change).unwrap();
        assert_eq!(settings.models[0].remote().unwrap().facts.vision, Some(false));
    }

    #[test]
    fn waits_are_kept_within_their_bounds_and_unset_again() {
        let mut settings = Settings::default();
        let with = |wait_seconds, stall_seconds| ProviderDraft {
            options: ProviderOptions { wait_seconds, stall_seconds, ..ProviderOptions::default() },
            ..draft(ProviderKind::OpenaiCompatible, Some("http://localhost:11434/v1"))
        };
        let id = add(&mut settings, with(Some(86_400), Some(1))).unwrap().id;
        for (wait, stall, named) in
            [(Some(0), None, "`wait_seconds`"), (None, Some(86_401), "`stall_seconds` can't be 86401")]
        {
            let problem = change(&mut settings, &id, with(wait, stall)).unwrap_err();
            assert_eq!(problem.code, "bad_wait");
            assert!(problem.message.contains(named), "{problem}");
        }
        assert_eq!(settings.providers[0].options, with(Some(86_400), Some(1)).options);
        assert_eq!(change(&mut settings, &id, with(None, None)).unwrap().options, ProviderOptions::default());
    }

    #[test]
    fn what_would_be_a_part_of_an_address_is_looked_at() {
        let mut settings = Settings::default();
        let vertex = draft(ProviderKind::Vertex, None);
        for (project, location) in [("p/../q", "us"), ("p", "evil.com/"), ("P", "us")] {
            let draft = ProviderDraft {
                project: Some(project.into()),
                location: Some(location.into()),
                ..vertex.clone()
            };
            assert_eq!(add(&mut settings, draft).unwrap_err().code, "bad_provider");
        }
        assert!(add(&mut settings, draft(ProviderKind::OpenaiCompatible, None)).is_err());
        assert!(settings.providers.is_empty());
    }
}
