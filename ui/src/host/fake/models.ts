// What the fake host knows of models: files, advice, a repository, a machine.
import type {
  AdviceView,
  BenchView,
  CuratedView,
  DownloadView,
  HardwareView,
  ModelDetails,
  ModelFolderView,
  ModelView,
  RepositoryView,
  Verdict,
} from "../../bindings/app";

const GB = 1_000_000_000;
const ROOM = 11.4 * GB;

/** As the app works it out, roughly. */
export function advice(weights: number, context = 8192, guessed = false): AdviceView {
  const kv = context * 57_344;
  const compute = 310_000_000;
  const total = weights + kv + compute;
  const verdict: Verdict = total > ROOM ? "too_big" : total > ROOM * 0.75 ? "tight" : "fits";
  const message =
    verdict === "fits"
      ? "it leaves room for other programs"
      : "other programs would have to make room for it, or it does not fit at all";
  return {
    verdict,
    need: { weights, kv, compute, total, guessed },
    context,
    suggested_context: verdict === "too_big" ? null : 16_384,
    available: ROOM,
    speed: { generation: 24 / (weights / GB), prompt: null, source: "estimated" },
    reasons: [{ code: "memory", message }],
  };
}

export function starter(): ModelView {
  return {
    id: "starter",
    name: "Lectern Starter",
    path: null,
    size: 3_100_000,
    architecture: "llama",
    parameters: 1_400_000,
    quantisation: "F16",
    context_length: 4096,
    tool_mode: "native",
    vision: false,
    starter: true,
    origin: "built_in",
    missing: false,
    advice: null,
    bench: null,
    problem: null,
  };
}

export function extraModel(): ModelView {
  return {
    ...starter(),
    id: "llama-3.2-3b",
    name: "Llama 3.2 3B Instruct",
    path: "/home/lena/models/Llama-3.2-3B-Instruct-Q4_K_M.gguf",
    size: 2_020_000_000,
    parameters: 3_210_000_000,
    quantisation: "Q4_K_M",
    context_length: 131_072,
    starter: false,
    origin: "file",
    advice: advice(2_020_000_000),
  };
}

export function brokenModel(): ModelView {
  return {
    ...extraModel(),
    id: "broken",
    name: "broken.gguf",
    path: "/home/lena/models/broken.gguf",
    architecture: null,
    parameters: null,
    quantisation: null,
    context_length: null,
    advice: null,
    problem: {
      code: "bad_model_file",
      message: "open /home/lena/models/broken.gguf: tensor `blk.3.attn_q.weight` lies outside the file",
      hint: "Download the file again.",
      detail: null,
    },
  };
}

const LONG =
  "Qwen3-Coder-30B-A3B-Instruct-abliterated-heretic-uncensored-imatrix-with-a-very-long-name-that-somebody-chose";

/** A model of every kind. */
export function everyModel(): ModelView[] {
  const folder = "/home/lena/.cache/lm-studio/models/a folder of others/";
  return [
    starter(),
    { ...extraModel(), bench: bench("llama-3.2-3b") },
    {
      ...extraModel(),
      id: "qwen3-4b",
      name: "Qwen3 4B",
      path: "/home/lena/.local/share/lectern/models/Qwen3-4B-Q4_K_M.gguf",
      size: 2_497_280_256,
      parameters: 4_022_468_096,
      origin: "library",
      context_length: 40_960,
    },
    {
      ...extraModel(),
      id: "gemma",
      name: "Gemma 3 12B it",
      path: `${folder}gemma-3-12b-it-Q4_K_M.gguf`,
      size: 7_300_000_000,
      parameters: 11_766_034_176,
      origin: "folder",
      tool_mode: "prompted",
      advice: advice(8_900_000_000),
    },
    {
      ...extraModel(),
      id: "coder",
      name: LONG,
      path: `${folder}${LONG}-Q4_K_M-00001-of-00002.gguf`,
      size: 18_600_000_000,
      parameters: 30_532_122_624,
      origin: "folder",
      advice: advice(18_600_000_000),
    },
    {
      ...extraModel(),
      id: "gone",
      name: "Phi 4 mini",
      path: "/media/stick/phi-4-mini.gguf",
      missing: true,
      advice: null,
    },
    brokenModel(),
  ];
}

export function bench(model: string): BenchView {
  return {
    model,
    prompt_tokens_per_second: 61.3,
    generation_tokens_per_second: 9.42,
    prompt_tokens: 128,
    generated_tokens: 38,
    load_ms: 1340,
    threads: 4,
    at: new Date(Date.now() - 3_600_000).toISOString(),
  };
}

export function detailsOf(model: ModelView, context: number | null): ModelDetails {
  const size = model.size ?? 0;
  const trained = model.context_length ?? 4096;
  return {
    path: model.path ?? "/home/lena/.local/share/lectern/models/starter.gguf",
    name: model.name,
    architecture: model.architecture ?? "llama",
    parameters: model.parameters ?? 0,
    quantisation: model.quantisation ?? "",
    context_length: trained,
    size,
    parts: model.id === "coder" ? 2 : 1,
    tool_mode: model.tool_mode,
    parallel_calls: model.tool_mode === "native",
    thinking: model.id === "qwen3-4b",
    has_template: true,
    template: "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n{%- endif %}\n<b>not markup</b>",
    template_error: null,
    licence: model.starter ? "MIT" : "llama3.2",
    advice: advice(size, context ?? Math.min(trained, 8192)),
    bench: model.bench,
  };
}

export function machine(): HardwareView {
  return {
    processor: "AMD Ryzen 7 5700U with Radeon Graphics",
    physical_cores: 8,
    logical_cores: 16,
    memory_total: 15.9 * GB,
    memory_available: ROOM,
    memory_limit: null,
    instruction_sets: ["sse3", "avx", "avx2", "fma", "f16c", "bmi2"],
    devices: [
      { name: "CPU", description: "AMD Ryzen 7 5700U", kind: "cpu", memory_total: 15.9 * GB, memory_free: ROOM },
    ],
    devices_problem: null,
    weights_per_second: 19_000_000_000,
  };
}

export const folders: readonly ModelFolderView[] = [
  { path: "/home/lena/.local/share/lectern/models", kind: "library", models: 1, problem: null },
  { path: "/home/lena/.cache/lm-studio/models/a folder of others", kind: "watched", models: 2, problem: null },
  {
    path: "/media/stick/models",
    kind: "watched",
    models: 0,
    problem: {
      code: "bad_folder",
      message: "read /media/stick/models: no such folder",
      hint: "Plug the disk in again.",
      detail: null,
    },
  },
  { path: "/home/lena/.ollama/models", kind: "ollama", models: 3, problem: null },
];

export function curated(): CuratedView[] {
  const one = {
    repository: "Qwen/Qwen3-4B-GGUF",
    file: "Qwen3-4B-Q4_K_M.gguf",
    quantisation: "Q4_K_M",
    size: 2_497_280_256,
    parameters: 4_022_468_096,
    licence: "Apache-2.0",
    languages: ["en", "fr", "zh", "de", "es"],
    min_memory: 6 * GB,
    verified: true,
    own: false,
  };
  return [
    {
      ...one,
      title: "Qwen3 4B",
      note: "Calls tools well and thinks when asked to.",
      advice: advice(one.size, 8192, true),
      model: "qwen3-4b",
    },
    {
      ...one,
      title: "SmolLM3 3B",
      repository: "ggml-org/SmolLM3-3B-GGUF",
      file: "SmolLM3-Q4_K_M.gguf",
      size: 1_915_305_312,
      parameters: 3_075_098_624,
      languages: ["en", "fr", "es", "de", "it", "pt"],
      note: "Small, open, with six languages of Europe.",
      advice: advice(1_915_305_312, 8192, true),
      model: null,
    },
    {
      ...one,
      title: "Mistral Small 3.2 24B",
      repository: "bartowski/Mistral-Small-3.2-24B-Instruct-2506-GGUF",
      file: "Mistral-Small-3.2-24B-Instruct-2506-Q4_K_M.gguf",
      size: 14_333_910_816,
      parameters: 23_572_403_200,
      note: "For a computer with much memory.",
      advice: advice(14_333_910_816, 8192, true),
      own: true,
      model: null,
    },
  ];
}

export function repository(target: string): RepositoryView {
  const file = (quantisation: string, size: number) => ({
    name: `Qwen3-4B-${quantisation}.gguf`,
    size,
    quantisation,
    sha256: null,
    parts: 1,
    projector: false,
    advice: advice(size, 8192, true),
    model: null,
  });
  return {
    target,
    host: "huggingface.co",
    revision: "main",
    suggested: "Qwen3-4B-Q4_K_M.gguf",
    other_files: 4,
    files: [
      { ...file("mmproj", 450_000_000), name: "mmproj-Qwen3-4B-F16.gguf", projector: true, advice: null },
      { ...file("Q4_K_M", 2_497_280_256), model: "qwen3-4b" },
      file("Q8_0", 4_280_404_704),
      {
        ...file("F32", 16_100_000_000),
        name: `a folder inside/${LONG}-F32-00001-of-00002.gguf`,
        parts: 2,
        size: null,
      },
    ],
  };
}

export function download(change: Partial<DownloadView>): DownloadView {
  return {
    id: "d1",
    name: "SmolLM3-Q4_K_M.gguf",
    path: "/home/lena/.local/share/lectern/models/SmolLM3-Q4_K_M.gguf",
    target: "ggml-org/SmolLM3-3B-GGUF",
    host: "huggingface.co",
    done: 431_000_000,
    total: 1_915_305_312,
    bytes_per_second: 8_300_000,
    seconds_left: 179,
    state: { type: "running" },
    notice: null,
    ...change,
  };
}

/** A download of every kind. */
export const everyDownload: readonly DownloadView[] = [
  download({}),
  download({ id: "d2", name: `${LONG}-Q4_K_M.gguf`, done: 0, total: null, state: { type: "queued" } }),
  download({ id: "d3", name: "gemma-3-4b-it-Q4_K_M.gguf", state: { type: "paused" } }),
  download({ id: "d4", name: "granite-4.0-h-tiny-Q4_K_M.gguf", done: 1_915_305_312, state: { type: "checking" } }),
  download({
    id: "d5",
    name: "phi-4-mini-instruct-Q4_K_M.gguf",
    notice: "The file changed on the server, so it starts anew.",
    state: {
      type: "failed",
      problem: {
        code: "disk_full",
        message: "download phi-4-mini-instruct-Q4_K_M.gguf: 2.5 GB are needed, 1.1 GB are free",
        hint: "Free some space, then go on.",
        detail: null,
      },
    },
  }),
];
