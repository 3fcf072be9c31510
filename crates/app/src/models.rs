//! The models that can answer: the starter, GGUF files that stay where the user has them, and models of providers.
//!
//! Invariant: at most one model is kept in memory beyond the turns that use it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use lectern_core::{ChatModel, ModelId, ToolMode};
use lectern_local::memory::MemoryPlan;
use lectern_local::saved::Deleted;
use lectern_local::{
    CacheOptions, Inspection, Lingering, LocalModel, LocalOptions, ModelFileError, ModelFileInfo,
    WorkerCommand, read_info,
};
use tokio::sync::Mutex as AsyncMutex;

use crate::entry;
use crate::fitted::Fitted;
use crate::generation::{Effective, Levels};
use crate::given_way::GivenWay;
use crate::home::Home;
use crate::providers::{self, Providers, Remote};
use crate::settings::{ModelEntry, ModelOptions, ModelSource, RemoteEntry, Settings};
use crate::starter::{self, STARTER_ID, STARTER_NAME};
use crate::states::cache_options;
use crate::unusable::Unusable;
use crate::vaults::{reason, slug};
use crate::view::{ModelOrigin, ModelView, Problem};

/// One model of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its id.
    pub id: ModelId,
    /// Where it is.
    pub source: Source,
    /// How it is used.
    pub options: ModelOptions,
}

/// Where a model is.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Built in.
    Starter,
    /// A GGUF file.
    File(PathBuf),
    /// At a provider.
    Remote(Box<Remote>),
}

impl Model {
    fn starter(options: &ModelOptions) -> Self {
        let tool_mode = options.tool_mode.or(Some(ToolMode::Native));
        Self {
            id: STARTER_ID.into(),
            source: Source::Starter,
            options: ModelOptions { tool_mode, ..options.clone() },
        }
    }

    pub(crate) fn of_entry(entry: &ModelEntry, settings: &Settings) -> Self {
        let source = match &entry.source {
            ModelSource::File(path) => Source::File(path.clone()),
            ModelSource::Remote(remote) => Source::Remote(Box::new(of_provider(remote, settings))),
        };
        Self { id: entry.id.clone(), source, options: entry.options.clone() }
    }

    /// Its file, where the user named one; none for the starter and for remote models.
    pub fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::File(path) => Some(path),
            Source::Starter | Source::Remote(_) => None,
        }
    }
}

fn of_provider(entry: &RemoteEntry, settings: &Settings) -> Remote {
    let provider = settings.providers.iter().find(|provider| provider.id == entry.provider);
    Remote { entry: entry.clone(), provider: provider.cloned() }
}

impl Model {
    /// What is set for the model, without any conversation.
    fn alone(&self) -> Effective {
        Levels { model: self.options.entry(), ..Levels::default() }.effective()
    }

    /// How it is loaded, as far as its own settings say.
    pub(crate) fn local(&self) -> LocalOptions {
        self.alone().local()
    }

    /// How its memory is planned, with so many tokens of context; a part that sees and can't be used is the problem of
    /// the turn that wants it.
    pub(crate) fn plan(&self, info: &ModelFileInfo, context: u32) -> MemoryPlan {
        let options = self.alone().local();
        let usual = MemoryPlan::default();
        let projector = lectern_local::projector_of(info, &options.projector).ok().flatten();
        // One that can't be read is refused when the model is loaded.
        let draft = options.speed.draft.as_deref().and_then(|path| lectern_local::read_info(path).ok());
        MemoryPlan {
            context,
            draft: draft.map(|draft| draft.shape),
            mtp: options.speed.mtp,
            kept: Some(CacheOptions::default().memory_bytes),
            keys: options.speed.keys.unwrap_or(usual.keys),
            values: options.speed.values.unwrap_or(usual.values),
            projector: projector.map(|projector| projector.shape),
            ..usual
        }
    }

    /// Whether it is the same as far as loading goes; how it writes is said with each request.
    pub(crate) fn loads_like(&self, other: &Self) -> bool {
        let loading = |model: &Self| (model.id.clone(), model.source.clone(), model.alone().load_key());
        loading(self) == loading(other)
    }
}

/// All models of the settings, the starter first.
pub fn of_settings(settings: &Settings) -> Vec<Model> {
    std::iter::once(Model::starter(&settings.starter))
        .chain(settings.models.iter().map(|entry| Model::of_entry(entry, settings)))
        .collect()
}

/// The model that a person named: an id of the list, or else a file that is used without being added.
pub fn named(text: &str, settings: &Settings) -> Result<Model, Problem> {
    let models = of_settings(settings);
    if let Some(model) = models.iter().find(|model| model.id.as_str() == text) {
        return Ok(model.clone());
    }
    let path = Path::new(text);
    if let Some(model) = at_provider(text, settings).filter(|_| !path.exists()) {
        return Ok(model);
    }
    let looks_like_file =
        text.contains(std::path::MAIN_SEPARATOR) || text.ends_with(".gguf") || path.exists();
    if !looks_like_file {
        let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
        return Err(Problem::new("unknown_model", format!("there is no model `{text}`"))
            .hint(format!("Name a GGUF file, PROVIDER/MODEL, or one of: {}.", ids.join(", "))));
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Some(model) = models.iter().find(|model| model.path() == Some(&path)) {
        return Ok(model.clone());
    }
    let taken = |id: &str| models.iter().any(|model| model.id.as_str() == id);
    Ok(Model { id: free_id(&path, taken), source: Source::File(path), options: ModelOptions::default() })
}

/// `PROVIDER/MODEL`: a model that is used without being added.
fn at_provider(text: &str, settings: &Settings) -> Option<Model> {
    let (provider, name) = text.split_once('/').filter(|(_, name)| !name.is_empty())?;
    let provider = settings.providers.iter().find(|entry| entry.id.0 == provider)?;
    let listed = of_settings(settings).into_iter().find(|model| match &model.source {
        Source::Remote(remote) => remote.entry.is(&provider.id, name),
        Source::Starter | Source::File(_) => false,
    });
    Some(listed.unwrap_or_else(|| {
        let entry = RemoteEntry::new(provider.id.clone(), name);
        let source = Source::Remote(Box::new(of_provider(&entry, settings)));
        Model { id: text.into(), source, options: ModelOptions::default() }
    }))
}

/// A model of an OpenAI-compatible endpoint that is in no settings, for one run. It is asked as nobody.
pub(crate) fn at_address(name: &str, base_url: &str) -> Result<Model, Problem> {
    let provider = providers::endpoint(base_url)?;
    let entry = RemoteEntry::new(provider.id.clone(), name);
    let source = Source::Remote(Box::new(Remote { entry, provider: Some(provider) }));
    Ok(Model { id: name.into(), source, options: ModelOptions::default() })
}

/// Adds a file to the settings, or finds it there. The file is read, not copied.
pub fn add(settings: &mut Settings, path: &Path) -> Model {
    add_named(settings, path, None)
}

/// The same with a name that says more than that of the file.
pub fn add_named(settings: &mut Settings, path: &Path, name: Option<&str>) -> Model {
    if let Some(entry) = settings.models.iter().find(|entry| entry.path() == Some(path)) {
        return Model::of_entry(entry, settings);
    }
    let id = match name {
        Some(name) => free_id(&path.with_file_name(format!("{name}.gguf")), |id| is_taken(settings, id)),
        None => free_id(path, |id| is_taken(settings, id)),
    };
    let entry = ModelEntry::of_file(id, path);
    let model = Model::of_entry(&entry, settings);
    settings.models.push(entry);
    model
}

/// Puts an entry back that was taken out; its id is changed when another has it now.
pub fn put_back(settings: &mut Settings, entry: ModelEntry) -> Model {
    if let Some(known) = settings.models.iter().find(|known| known.source == entry.source) {
        return Model::of_entry(known, settings);
    }
    let id = match (is_taken(settings, entry.id.as_str()), entry.path()) {
        (false, _) => entry.id.clone(),
        (true, Some(path)) => free_id(path, |id| is_taken(settings, id)),
        (true, None) => ModelId(free_named(entry.id.as_str(), "model", |id| is_taken(settings, id))),
    };
    let entry = ModelEntry { id, ..entry };
    let model = Model::of_entry(&entry, settings);
    settings.models.push(entry);
    model
}

pub(crate) fn is_taken(settings: &Settings, id: &str) -> bool {
    id == STARTER_ID || settings.models.iter().any(|entry| entry.id.as_str() == id)
}

/// Takes a model out of the settings; its file stays.
pub fn remove(settings: &mut Settings, id: &ModelId) -> Result<(), Problem> {
    if id.as_str() == STARTER_ID {
        return Err(Problem::new("starter_stays", "the starter model is built in and can't be removed"));
    }
    let before = settings.models.len();
    settings.models.retain(|entry| entry.id != *id);
    if settings.models.len() == before {
        return Err(unknown(id));
    }
    if settings.model.as_ref() == Some(id) {
        settings.model = None;
    }
    Ok(())
}

/// There is no such model.
pub fn unknown(id: &ModelId) -> Problem {
    Problem::new("unknown_model", format!("there is no model `{id}`"))
        .hint("`lectern models list` shows them.")
}

/// What is known of files, and the model in memory.
pub struct Models {
    home: Home,
    worker: WorkerCommand,
    providers: Arc<Providers>,
    // A std mutex: nothing awaits while it is held.
    known: Mutex<HashMap<PathBuf, Known>>,
    loaded: AsyncMutex<Option<(Model, Arc<LocalModel>)>>,
    given_way: GivenWay,
    /// What they all have to forget.
    deleted: Deleted,
}

/// What a file said of itself when it had this size and time.
struct Known {
    stamp: Stamp,
    info: Result<ModelFileInfo, Problem>,
}

type Stamp = Option<(u64, SystemTime)>;

impl Models {
    /// Nothing is read yet.
    pub(crate) fn new(home: Home, executable: &Path, providers: Arc<Providers>) -> Self {
        let worker = entry::worker_command(executable).remembering(home.unfit_code());
        Self {
            home,
            worker,
            providers,
            known: Mutex::default(),
            loaded: AsyncMutex::default(),
            given_way: GivenWay::default(),
            deleted: Deleted::default(),
        }
    }

    /// How the processes of models are started.
    pub(crate) fn worker(&self) -> &WorkerCommand {
        &self.worker
    }

    /// What a file says of itself. Its header is read once per change of the file.
    pub fn inspect(&self, path: &Path) -> Result<ModelFileInfo, Problem> {
        let stamp = std::fs::metadata(path).ok().and_then(|meta| Some((meta.len(), meta.modified().ok()?)));
        if let Some(known) = lock(&self.known).get(path).filter(|known| known.stamp == stamp) {
            return known.info.clone();
        }
        let info = read_info(path).map_err(|error| bad_file(&error));
        lock(&self.known).insert(path.to_owned(), Known { stamp, info: info.clone() });
        info
    }

    /// A model as the shells show it.
    pub fn view(&self, model: &Model) -> ModelView {
        let path = match &model.source {
            Source::Starter => return self.starter_view(model),
            Source::Remote(remote) => return self.providers.model_view(model, remote),
            Source::File(path) => path,
        };
        let info = self.inspect(path);
        let file_name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let view = ModelView {
            id: model.id.clone(),
            name: file_name,
            path: Some(path.display().to_string()),
            size: None,
            architecture: None,
            parameters: None,
            quantisation: None,
            context_length: model.options.context_length,
            tool_mode: model.options.tool_mode.unwrap_or_default(),
            vision: false,
            starter: false,
            origin: ModelOrigin::File,
            remote: None,
            missing: !path.exists(),
            advice: None,
            bench: None,
            problem: None,
        };
        match info {
            Ok(info) => ModelView {
                vision: model.plan(&info, 0).projector.is_some(),
                ..with_info(view, &info, &model.options)
            },
            Err(problem) => ModelView { problem: Some(problem), ..view },
        }
    }

    fn starter_view(&self, model: &Model) -> ModelView {
        let view = ModelView {
            id: model.id.clone(),
            name: STARTER_NAME.to_owned(),
            path: None,
            size: Some(starter::size()),
            architecture: None,
            parameters: None,
            quantisation: None,
            context_length: None,
            tool_mode: ToolMode::Native,
            vision: false,
            starter: true,
            origin: ModelOrigin::BuiltIn,
            remote: None,
            missing: false,
            advice: None,
            bench: None,
            problem: None,
        };
        match starter::install(&self.home).and_then(|path| self.inspect(&path)) {
            Ok(info) => ModelView {
                name: view.name.clone(),
                path: None,
                size: view.size,
                ..with_info(view, &info, &model.options)
            },
            Err(problem) => ModelView { problem: Some(problem), ..view },
        }
    }

    /// The same with what llama.cpp makes of the chat template; a worker looks at it.
    pub async fn examine(&self, path: &Path) -> Result<Inspection, Problem> {
        lectern_local::inspect(path, &self.worker).await.map_err(|error| bad_file(&error))
    }

    /// Renders a plain chat with a template; one that can't is refused with the reason.
    pub(crate) async fn try_template(&self, text: &str) -> Result<(), Problem> {
        let tried = lectern_local::try_template(text, &self.worker).await;
        tried.map_err(|fault| {
            Problem::new("bad_setting", format!("the template {fault}"))
                .hint("Nothing was changed; the model keeps the template that it has.")
        })
    }

    /// The model ready to be asked. Its file is loaded with the first question; a file that can't be used is an error
    /// of that turn, so that the question is kept.
    pub async fn open(&self, model: &Model) -> Result<Arc<dyn ChatModel>, Problem> {
        let file = match &model.source {
            Source::File(path) => Some(path.clone()),
            Source::Starter => None,
            // A keyring may wait for its user; no other model waits with it.
            Source::Remote(remote) => return Ok(self.providers.open(model, remote).await),
        };
        let mut loaded = self.loaded.lock().await;
        if let Some((_, open)) = loaded.as_ref().filter(|(of, _)| of.loads_like(model)) {
            return Ok(fitted(Arc::clone(open)));
        }
        let open = match self.given_way.take_back(model).await {
            Some(open) => open,
            None => match self.open_anew(model, file).await? {
                Ok(open) => Arc::new(open),
                Err(error) => return Ok(Arc::new(Unusable::new(model.id.clone(), bad_file(&error)))),
            },
        };
        if let Some((of, before)) = loaded.replace((model.clone(), Arc::clone(&open))) {
            self.given_way.put(of, before).await;
        }
        Ok(fitted(open))
    }

    async fn open_anew(
        &self,
        model: &Model,
        file: Option<PathBuf>,
    ) -> Result<Result<LocalModel, ModelFileError>, Problem> {
        let path = match file {
            Some(path) => path,
            None => self.installed_starter().await?,
        };
        let (cache, deleted) = (cache_options(&self.home), self.deleted.clone());
        let options = LocalOptions { cache, deleted, ..model.alone().local() };
        Ok(LocalModel::open(model.id.clone(), &path, options, self.worker.clone()).await)
    }

    /// Ends the model's process, and those of models that were let go. A turn that uses one fails.
    pub async fn close(&self) {
        for model in self.living().await {
            model.unload().await;
        }
        self.loaded.lock().await.take();
    }

    /// Whether it is in memory.
    pub(crate) async fn is_loaded(&self, id: &ModelId) -> bool {
        self.given_way.has(id) || self.loaded.lock().await.as_ref().is_some_and(|(model, _)| model.id == *id)
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn deleted(&self) -> &Deleted {
        &self.deleted
    }

    /// The open model, and those that were let go and are not gone yet.
    pub(crate) async fn living(&self) -> Vec<Lingering> {
        let open = self.loaded.lock().await.as_ref().map(|(_, open)| open.lingering());
        open.into_iter().chain(self.given_way.lingering()).collect()
    }

    /// The starter's file; megabytes are compared or written.
    pub async fn installed_starter(&self) -> Result<PathBuf, Problem> {
        let home = self.home.clone();
        let installed = tokio::task::spawn_blocking(move || starter::install(&home)).await;
        installed.map_err(|error| Problem::new("defect", format!("write the starter model: {error}")))?
    }
}

/// The starter answers one question at a time; for any other model the turn makes its requests fit.
fn fitted(open: Arc<LocalModel>) -> Arc<dyn ChatModel> {
    if starter::is_starter(open.info()) { Arc::new(Fitted::new(open)) } else { open }
}

fn with_info(view: ModelView, info: &ModelFileInfo, options: &ModelOptions) -> ModelView {
    ModelView {
        name: if info.name.is_empty() { view.name } else { info.name.clone() },
        size: Some(info.file_bytes),
        architecture: Some(info.architecture.clone()),
        parameters: Some(info.parameters),
        quantisation: Some(info.quantization.clone()),
        context_length: options.context_length.or(Some(info.context_length)),
        tool_mode: options.tool_mode.unwrap_or_else(|| tool_mode_of(info)),
        ..view
    }
}

/// A template that speaks of tools knows them; any other model gets them described in the prompt.
fn tool_mode_of(info: &ModelFileInfo) -> ToolMode {
    match &info.template {
        Some(template) if template.contains("tools") => ToolMode::Native,
        Some(_) | None => ToolMode::Prompted,
    }
}

fn bad_file(error: &ModelFileError) -> Problem {
    Problem::from_error("bad_model_file", error).hint("Choose another GGUF file, or load this one again.")
}

fn free_id(path: &Path, taken: impl Fn(&str) -> bool) -> ModelId {
    let name = slug(&path.file_stem().unwrap_or_default().to_string_lossy());
    ModelId(free_named(&name, "model", taken))
}

/// The stem, or the stem with the first number that makes it free.
pub(crate) fn free_named(stem: &str, otherwise: &str, taken: impl Fn(&str) -> bool) -> String {
    let stem = if stem.is_empty() { otherwise } else { stem };
    let mut candidates = std::iter::once(stem.to_owned()).chain((2..).map(|n| format!("{stem}-{n}")));
    candidates.find(|id| !taken(id)).unwrap_or_default()
}

/// The absolute path of a model file that is there.
pub fn file_of(path: &Path) -> Result<PathBuf, Problem> {
    let problem = |reason: String| {
        Problem::new("bad_model_file", format!("model file `{}`: {reason}", path.display()))
            .hint("Choose an existing GGUF file.")
    };
    std::fs::metadata(path).map_err(|error| problem(reason(&error)))?;
    std::path::absolute(path).map_err(|error| problem(reason(&error)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
