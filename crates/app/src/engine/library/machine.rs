//! What this machine can carry: its hardware, the test of a model, advice.
//!
//! Invariant: the hardware is read once; a test never runs beside another one, nor beside a turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lectern_core::ModelId;
use lectern_library::advice::{self, Need, Place, Question, Ran, weights_per_second};
use lectern_library::folders::files_of;
use lectern_library::machine::Memory;
use lectern_local::measure::{self, Device, DeviceKind as Kind};
use lectern_local::memory::{MemoryPlan, predict};
use lectern_local::{KvType, LocalOptions, ModelFileInfo, SpeedOptions, ToolSupport};

use super::super::Engine;
use crate::library::{KeptBench, of_measure};
use crate::models::{self, Model, Source};
use crate::settings::ModelOptions;
use crate::view::{
    AdviceReason, AdviceView, BenchView, DeviceKind, DeviceView, HardwareView, ModelDetails, ModelOrigin,
    ModelView, NeedView, Problem, SpeedSource, SpeedView, Verdict,
};

/// Tokens of context that a model is used with when nothing else is said.
const USUAL_CONTEXT: u32 = 8192;
/// How long a test takes, beside the load.
const TEST: Duration = Duration::from_secs(5);

impl Engine {
    /// What this machine has.
    pub async fn hardware(&self) -> Result<HardwareView, Problem> {
        let library = &self.0.library;
        let devices = library.devices.get_or_init(|| async {
            measure::devices(self.0.models.worker()).await.map_err(|error| of_measure(&error))
        });
        let devices = devices.await.clone();
        let (machine, memory) = (library.machine(), Memory::read());
        Ok(HardwareView {
            processor: machine.processor.clone(),
            physical_cores: machine.physical_cores,
            logical_cores: machine.logical_cores,
            memory_total: memory.total,
            memory_available: memory.available,
            memory_limit: memory.limit,
            instruction_sets: machine.instruction_sets.iter().map(|name| (*name).to_owned()).collect(),
            devices: devices.iter().flatten().map(device_view).collect(),
            devices_problem: devices.err(),
            weights_per_second: weights_per_second(&library.tests()),
        })
    }

    /// Everything about a model file before it is loaded; the need for memory with so many tokens of context, or with
    /// as many as it would be used with.
    pub async fn model_details(&self, path: &Path, context: Option<u32>) -> Result<ModelDetails, Problem> {
        let path = models::file_of(path)?;
        let inspected = self.0.models.examine(&path).await?;
        let (info, kept) = (&inspected.info, self.0.library.bench_of(&path));
        let model = self.of_file(&path);
        Ok(ModelDetails {
            path: path.display().to_string(),
            name: info.name.clone(),
            architecture: info.architecture.clone(),
            parameters: info.parameters,
            quantisation: info.quantization.clone(),
            context_length: info.context_length,
            size: size_of(&path, info),
            parts: u32::try_from(files_of(&path).len()).unwrap_or(1),
            tool_mode: match inspected.tools {
                ToolSupport::Native => lectern_core::ToolMode::Native,
                ToolSupport::Prompted => lectern_core::ToolMode::Prompted,
            },
            parallel_calls: inspected.parallel_calls,
            thinking: inspected.thinking,
            has_template: info.has_template,
            template: info.template.clone(),
            template_error: inspected.template_error.clone(),
            licence: info.licence.clone(),
            advice: Some(self.advice_of(&model, info, context, kept.as_ref())),
            bench: kept.map(|kept| kept.view(&model.id)),
        })
    }

    /// Tests for about five seconds how fast a model is here, and remembers it.
    pub async fn bench_model(&self, id: &ModelId) -> Result<BenchView, Problem> {
        let model = self.listed(id)?;
        self.bench(&model).await
    }

    /// The same for a model that a person named by its id or its file.
    pub async fn bench_named(&self, text: &str) -> Result<BenchView, Problem> {
        let model = models::named(text, &self.state().settings)?;
        self.bench(&model).await
    }

    async fn bench(&self, model: &Model) -> Result<BenchView, Problem> {
        let path = self.file_of(model).await?;
        // A broken file is named before a worker is started for it.
        self.0.models.inspect(&path)?;
        let _alone = self.0.library.testing.lock().await;
        if !self.0.turns.all_running().is_empty() {
            return Err(Problem::new(
                "turn_running",
                "an answer is being written, which would slow the test down",
            )
            .hint("Wait for the answer, or stop it."));
        }
        let (options, command) = (tested(model), self.0.models.worker());
        let bench =
            measure::bench(&path, &options, command, TEST).await.map_err(|error| of_measure(&error))?;
        let kept = self.0.library.keep_bench(&path, &bench)?;
        self.tell_models();
        Ok(kept.view(&model.id))
    }

    /// Whether a file, a model of the list, or each file of a repository suits this machine.
    pub async fn advise(
        &self,
        text: &str,
        context: Option<u32>,
    ) -> Result<Vec<(String, AdviceView)>, Problem> {
        // Devices count; they are asked once.
        self.hardware().await?;
        let known = self.listed_models(&self.state()).iter().any(|model| model.id.as_str() == text);
        if known || Path::new(text).is_file() || text.ends_with(".gguf") && !text.contains("://") {
            let model = models::named(text, &self.state().settings)?;
            let path = self.file_of(&model).await?;
            let info = self.0.models.inspect(&path)?;
            let kept = self.0.library.bench_of(&path);
            let context = context.or(model.options.context_length);
            let advice = self.advice_of(&model, &info, context, kept.as_ref());
            return Ok(vec![(model.id.0, advice)]);
        }
        let repository = self.list_repository(text).await?;
        let files = repository.files.into_iter();
        Ok(files
            .filter_map(|file| {
                let advice = match (context, file.size) {
                    (Some(_), Some(size)) if !file.projector => {
                        let need = move |context| advice::guess_need(size, context);
                        Some(self.advice(&need, None, context, None, None))
                    }
                    _ => file.advice,
                };
                Some((file.name, advice?))
            })
            .collect())
    }

    /// A model as the shells show it.
    pub(in crate::engine) fn model_view(&self, model: &Model) -> ModelView {
        let view = self.0.models.view(model);
        let path = match &model.source {
            Source::Starter => return self.starter_view(model, view),
            Source::Remote(_) => return view,
            Source::File(path) => path,
        };
        let folders = self.state().settings.model_folders.clone();
        let origin = if path.starts_with(self.0.home.models()) {
            ModelOrigin::Library
        } else if folders.iter().any(|folder| path.starts_with(folder)) {
            ModelOrigin::Folder
        } else {
            ModelOrigin::File
        };
        let Ok(info) = self.0.models.inspect(path) else { return ModelView { origin, ..view } };
        let kept = self.0.library.bench_of(path);
        ModelView {
            origin,
            size: Some(size_of(path, &info)),
            advice: Some(self.advice_of(model, &info, model.options.context_length, kept.as_ref())),
            bench: kept.map(|kept| kept.view(&model.id)),
            ..view
        }
    }

    /// The built-in model was written when its view was made.
    fn starter_view(&self, model: &Model, view: ModelView) -> ModelView {
        let Ok(path) = crate::starter::install(&self.0.home) else { return view };
        let Ok(info) = self.0.models.inspect(&path) else { return view };
        let kept = self.0.library.bench_of(&path);
        ModelView {
            advice: Some(self.advice_of(model, &info, model.options.context_length, kept.as_ref())),
            bench: kept.map(|kept| kept.view(&model.id)),
            ..view
        }
    }

    /// The advice about a file that is here.
    fn advice_of(
        &self,
        model: &Model,
        info: &ModelFileInfo,
        context: Option<u32>,
        kept: Option<&KeptBench>,
    ) -> AdviceView {
        let plan = model.plan(info, 0);
        let need = |context| need_of(info, MemoryPlan { context, ..plan.clone() });
        let narrow = narrower(info, &plan);
        let leaner =
            |context| need_of(info, MemoryPlan { context, ..narrow.clone().unwrap_or(plan.clone()) });
        let leaner = narrow.is_some().then_some(&leaner as &dyn Fn(u32) -> Need);
        let trained = Some(info.context_length).filter(|trained| *trained > 0);
        self.advice(&need, leaner, context, trained, kept.map(KeptBench::ran))
    }

    pub(super) fn advice(
        &self,
        need: &dyn Fn(u32) -> Need,
        leaner: Option<&dyn Fn(u32) -> Need>,
        context: Option<u32>,
        trained: Option<u32>,
        ran: Option<Ran>,
    ) -> AdviceView {
        let library = &self.0.library;
        let devices = library.devices.get().and_then(|devices| devices.as_ref().ok());
        let cards = devices.into_iter().flatten().filter(|device| device.kind == Kind::Gpu);
        let tests = library.tests();
        let place = Place {
            memory: Memory { available: Memory::read().available, ..library.machine().memory },
            graphics: cards.map(|card| card.memory_total).sum(),
            tests: &tests,
        };
        let context = context.unwrap_or_else(|| trained.unwrap_or(USUAL_CONTEXT).min(USUAL_CONTEXT));
        view_of(advice::advise(&Question { need, leaner, context, trained, ran }, &place))
    }

    /// The file of a model of the list.
    pub async fn model_file(&self, id: &ModelId) -> Result<PathBuf, Problem> {
        let model = self.listed(id)?;
        self.file_of(&model).await
    }

    /// The file of a model; the starter's is written when it is missing.
    pub(super) async fn file_of(&self, model: &Model) -> Result<PathBuf, Problem> {
        match &model.source {
            Source::File(path) => models::file_of(path),
            Source::Starter => self.0.models.installed_starter().await,
            Source::Remote(_) => {
                Err(Problem::new("no_file", format!("`{}` has no file: it is remote", model.id))
                    .hint("This is for models that run on this computer."))
            }
        }
    }

    /// The model of the list that this file is, or one that would be used without being added.
    fn of_file(&self, path: &Path) -> Model {
        let listed = self.listed_models(&self.state());
        listed.into_iter().find(|model| model.path() == Some(path)).unwrap_or_else(|| Model {
            id: ModelId(path.display().to_string()),
            source: Source::File(path.to_owned()),
            options: ModelOptions::default(),
        })
    }
}

/// The plan with a cache of half the size, where that can be had and is not chosen already.
fn narrower(info: &ModelFileInfo, plan: &MemoryPlan) -> Option<MemoryPlan> {
    let wide = |kept: KvType| kept.bytes_of_32() > KvType::Q8_0.bytes_of_32();
    // Numbers are kept in blocks of 32.
    let layers = &info.shape.attention;
    let can = !layers.is_empty() && layers.iter().all(|layer| layer.key % 32 == 0 && layer.value % 32 == 0);
    (can && wide(plan.keys) && wide(plan.values)).then(|| MemoryPlan {
        keys: KvType::Q8_0,
        values: KvType::Q8_0,
        ..plan.clone()
    })
}

/// With what a model is tested: as it is used, but for what guesses. The test has nothing to guess from.
fn tested(model: &Model) -> LocalOptions {
    let options = model.local();
    LocalOptions { speed: SpeedOptions { draft: None, idle_unload: None, ..options.speed }, ..options }
}

fn need_of(info: &ModelFileInfo, plan: MemoryPlan) -> Need {
    let need = predict(&info.shape, &plan);
    let compute = need.compute.saturating_add(need.other);
    let kv = need.kv.saturating_add(need.kept);
    Need { weights: need.weights, kv, compute, total: need.total, guessed: false }
}

/// All files of a model.
fn size_of(path: &Path, info: &ModelFileInfo) -> u64 {
    let files = files_of(path);
    let sizes = files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|meta| meta.len());
    if files.len() > 1 { sizes.sum() } else { info.file_bytes }
}

fn device_view(device: &Device) -> DeviceView {
    DeviceView {
        name: device.name.clone(),
        description: device.description.clone(),
        kind: match device.kind {
            Kind::Cpu => DeviceKind::Cpu,
            Kind::Gpu => DeviceKind::Gpu,
            Kind::IntegratedGpu => DeviceKind::IntegratedGpu,
            Kind::Accelerator => DeviceKind::Accelerator,
        },
        memory_total: device.memory_total,
        memory_free: device.memory_free,
    }
}

fn view_of(advice: advice::Advice) -> AdviceView {
    let need = advice.need;
    AdviceView {
        verdict: match advice.verdict {
            advice::Verdict::Fits => Verdict::Fits,
            advice::Verdict::Tight => Verdict::Tight,
            advice::Verdict::TooBig => Verdict::TooBig,
        },
        need: NeedView {
            weights: need.weights,
            kv: need.kv,
            compute: need.compute,
            total: need.total,
            guessed: need.guessed,
        },
        context: advice.context,
        suggested_context: advice.suggested_context,
        available: advice.available,
        speed: advice.pace.map(|pace| SpeedView {
            generation: pace.generation,
            prompt: pace.prompt,
            source: if pace.measured { SpeedSource::Measured } else { SpeedSource::Estimated },
        }),
        reasons: advice
            .reasons
            .into_iter()
            .map(|(code, message)| AdviceReason { code: code.to_owned(), message })
            .collect(),
    }
}
