// What happens in the turns of the fake host.
import type { ToolCall, TurnOutcome } from "../../bindings/core";
import { call, result, runCall, source, stats, step, type Script, type Stage } from "./script";
import { CJK_ANSWER, LONG_ANSWER, PLAIN_ANSWER } from "./texts";

const DONE: TurnOutcome = { type: "completed" };
const GINGER = "Recipes/Grandmother's ginger biscuits.md";
const NORWAY = "Travel/2019 Norway by rail.md";

/** Searches, reads, quotes: the main path. */
export const answer: Script = async (stage) => {
  const search = call("notes__search_notes", { query: "Norway hat fjord" });
  await step(stage, 0, { calls: [search], stats: stats(486, 0, 31) });
  const hit = source(NORWAY, "Norway by rail › Oslo", 16, 18);
  await runCall(
    stage,
    search,
    result(
      search,
      `[1] Norway by rail (${NORWAY})\nThomas lost his hat there: it rolled down the marble into the fjord.\n\n[2] Packing list (Travel/Packing list.md)\nA hat, even in June.`,
      { sources: [hit, source("Travel/Packing list.md", null, 4, 4)] },
    ),
    { ms: 90 },
  );
  const read = call("notes__read_note", { path: NORWAY });
  await step(stage, 1, { calls: [read], stats: stats(598, 517, 26) });
  await runCall(
    stage,
    read,
    result(read, "# Norway by rail\n\nTwo weeks with Thomas and no car, from 15 to 29 June 2019.", {
      sources: [hit],
      structured: { path: NORWAY, lines: 64 },
    }),
    { ms: 40 },
  );
  await step(stage, 2, { text: PLAIN_ANSWER, stats: stats(1430, 624, 68) });
  return DONE;
};

/** Thinks, and calls three tools at once, one of which fails. */
export const many: Script = async (stage) => {
  const calls = [
    call("notes__read_note", { path: GINGER }),
    call("notes__read_note", {
      path: "Recipes/A very long name of a folder inside another folder/and one more/Rye sourdough bread.md",
    }),
    call("files__word_count", { path: "Recipes", deep: true, kinds: ["md", "txt"] }),
  ] as const;
  await step(stage, 0, {
    thinking: "The user wants to compare two recipes. I should read both notes, and count the words.",
    text: "I'll look at both recipes.",
    calls: [...calls],
  });
  for (const one of calls) stage.emit({ kind: "tool_started", call: one });
  await stage.wait(300);
  stage.emit({
    kind: "tool_wire",
    call: calls[0].id,
    direction: "received",
    message: {
      cut: true,
      bytes: 108_094,
      start: '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"te',
      full: "long",
    },
  });
  await runCall(
    stage,
    calls[0],
    result(calls[0], "# Ginger biscuits\n\nThe secret is a spoon of black treacle.", {
      sources: [source(GINGER, "Ginger biscuits", 3, 3)],
    }),
    { ms: 400 },
  );
  await runCall(
    stage,
    calls[1],
    result(calls[1], "no note at this path\nThe nearest names are: Recipes/Rye sourdough.md", { outcome: "failed" }),
    { ms: 500 },
  );
  await runCall(stage, calls[2], result(calls[2], "12 files, 4,812 words"), {
    ms: 800,
    progress: [
      [3, 12, "Recipes/Chutney.md"],
      [8, 12, "Recipes/Jam.md"],
    ],
    log: ["word_count: 12 files"],
  });
  stage.emit({ kind: "notice", code: "result_cut", message: "the result of files__word_count was cut" });
  await step(stage, 1, {
    text: `From ${GINGER}:\n\n> The secret is a spoon of black treacle.\n\nThe other note could not be opened.`,
  });
  return DONE;
};

/** Writes a note: asks first. */
export const permission: Script = async (stage) => {
  const create = call("notes__create_note", {
    path: "Lists/Shopping.md",
    text: "# Shopping\n\n- oats\n- lemons\n- candles",
  });
  await step(stage, 0, { calls: [create] });
  const answer = await stage.ask(create);
  if (answer.answer === "deny") {
    stage.emit({
      kind: "tool_finished",
      message_id: "m",
      result: result(create, "the user did not allow this call", { outcome: "denied" }),
    });
    await step(stage, 1, { text: "I did not write the note." });
    return DONE;
  }
  await runCall(
    stage,
    create,
    result(create, "created Lists/Shopping.md", { structured: { path: "Lists/Shopping.md" } }),
  );
  await step(stage, 1, { text: "I created `Lists/Shopping.md` with your three things." });
  return DONE;
};

/** A long tool, first without a total, then with one; never ends by itself in the scene `running`. */
function slow(ends: boolean): Script {
  return async (stage) => {
    const calls = [
      call("everything__longRunningOperation", { duration: 60, steps: 20 }),
      call("notes__list_notes", { folder: "Travel" }),
    ] as const;
    await step(stage, 0, { text: "This takes a while.", calls: [...calls] });
    stage.emit({ kind: "tool_started", call: calls[0] });
    stage.emit({
      kind: "tool_wire",
      call: calls[0].id,
      direction: "sent",
      message: { jsonrpc: "2.0", id: 7, method: "tools/call" },
    });
    stage.emit({ kind: "tool_progress", call: calls[0].id, progress: { done: 1, total: null, message: "warming up" } });
    for (let done = 2; done <= 9; done++) {
      await stage.wait(ends ? 150 : 60);
      stage.emit({
        kind: "tool_progress",
        call: calls[0].id,
        progress: { done, total: 20, message: `step ${done} of 20` },
      });
    }
    if (!ends) await stage.forever();
    stage.emit({ kind: "tool_finished", message_id: "m", result: result(calls[0], "finished after 20 steps") });
    await runCall(stage, calls[1], result(calls[1], "- Travel/2019 Norway by rail.md\n- Travel/Packing list.md"));
    await step(stage, 1, { text: "- Travel/2019 Norway by rail.md\n- Travel/Packing list.md" });
    return DONE;
  };
}

export const running = slow(false);
export const slowTool = slow(true);

export const loading: Script = async (stage) => {
  stage.emit({ kind: "step_started", step: 0, tools: [] });
  for (let at = 0; at <= 42; at += 6) {
    stage.emit({ kind: "model_loading", fraction: at / 100 });
    await stage.wait(120);
  }
  return stage.forever();
};

export const reading: Script = async (stage) => {
  stage.emit({ kind: "step_started", step: 0, tools: [] });
  stage.emit({ kind: "prompt_progress", done: 120, total: 512, reused: 64 });
  return stage.forever();
};

export const failed: Script = async (stage) => {
  await beginning(stage, "I'll look into the");
  return {
    type: "failed",
    error: {
      code: { type: "model", model: "model_crashed" },
      message: "the model process ended with signal 6",
      hint: null,
      detail: { exit: "SIGABRT", stderr: ["GGML_ASSERT(n_tokens <= n_batch) failed"] },
    },
  };
};

export const badFile: Script = async () => ({
  type: "failed",
  error: {
    code: { type: "model", model: "bad_model_file" },
    message: "open /home/lena/models/broken.gguf: tensor `blk.3.attn_q.weight` lies outside the file",
    hint: "Download the file again, or choose another model.",
    detail: null,
  },
});

export const limit: Script = async (stage) => {
  for (let number = 0; number < 3; number++) {
    const search = call("notes__search_notes", { query: `heat pump ${number}` });
    await step(stage, number, { calls: [search] });
    await runCall(stage, search, result(search, "nothing found"));
  }
  return { type: "step_limit" };
};

export const cut: Script = async (stage) => {
  await step(stage, 0, { text: "The list begins with oats and lemons, and goes on with", finish: "length" });
  return DONE;
};

/** The provider takes back the rest of its answer. */
export const withheld: Script = async (stage) => {
  stage.emit({
    kind: "notice",
    code: "withheld_safety",
    message: "the provider withheld the rest of the answer (SAFETY)",
  });
  await step(stage, 0, { text: "The list begins with", finish: "filtered" });
  return DONE;
};

/** Has written half of an answer and never goes on. */
export const streaming: Script = async (stage) => {
  await beginning(stage, LONG_ANSWER.slice(0, 900));
  return stage.forever();
};

async function beginning(stage: Stage, text: string): Promise<void> {
  stage.emit({ kind: "step_started", step: 0, tools: [] });
  for (const piece of text.match(/[\s\S]{1,12}/gu) ?? []) {
    stage.emit({ kind: "text_delta", text: piece });
    await stage.wait(4);
  }
}

export const long: Script = async (stage) => {
  await step(stage, 0, {
    thinking: "A long answer with everything in it.",
    text: Array.from({ length: repeats() }, () => LONG_ANSWER).join("\n\n"),
    pace: 6,
  });
  return DONE;
};

/** `?repeat=20` makes the long answer so many times as long. */
function repeats(): number {
  const asked = typeof location === "undefined" ? null : new URLSearchParams(location.search).get("repeat");
  return Math.min(100, Math.max(1, Number(asked ?? "1") || 1));
}

export const chinese: Script = async (stage) => {
  const path = "旅行/云南之行.md";
  const search: ToolCall = call("notes__search_notes", { query: "昆明 小旅馆" });
  await step(stage, 0, { calls: [search] });
  await runCall(
    stage,
    search,
    result(search, `[1] 云南之行 (${path})\n住在翠湖边上的一家小旅馆，叫“听鸥楼”，每晚二百四十元。`, {
      sources: [source(path, "云南之行 › 昆明", 12, 12)],
    }),
  );
  await step(stage, 1, { text: CJK_ANSWER });
  return DONE;
};

/** Which script answers a text that the user types. */
export function scriptFor(text: string): Script {
  const words: readonly [RegExp, Script][] = [
    [/creat|write|crée|新建|shopping/i, permission],
    [/slow|long-running|wait/i, slowTool],
    [/crash|fail/i, failed],
    [/broken/i, badFile],
    [/limit/i, limit],
    [/cut/i, cut],
    [/long|everything/i, long],
    [/compare|both|many/i, many],
    [/[\u4e00-\u9fff]/u, chinese],
  ];
  return words.find(([pattern]) => pattern.test(text))?.[1] ?? answer;
}

const MINUTE_QUOTA = "429 Resource exhausted: quota of requests per minute";

/** A remote model: asked again twice, then a thought, a call, an answer, in the provider's own figures. */
export const remoteAnswer: Script = async (stage) => {
  const search = call("notes__search_notes", { query: "hat" });
  stage.emit({ kind: "step_started", step: 0, tools: [] });
  stage.emit({ kind: "retrying", after_ms: 600, attempt: 1, reason: "rate_limited", message: MINUTE_QUOTA });
  await stage.wait(600);
  const figures = {
    usage: {
      prompt_tokens: 1830,
      reused_tokens: 1024,
      generated_tokens: 96,
      thinking_tokens: 64,
      prompt_ms: null,
      generation_ms: null,
    },
    first_delta_ms: 900,
    total_ms: 1700,
  };
  stage.emit({ kind: "thinking_delta", text: "I should look it up." });
  stage.emit({
    kind: "step_finished",
    step: 0,
    message_id: "m0",
    message: {
      parts: [
        { type: "thinking", text: "I should look it up." },
        { type: "tool_call", ...search },
      ],
      model: "gemini-flash",
      incomplete: false,
    },
    finish: "tool_calls",
    stats: figures,
  });
  await runCall(stage, search, result(search, "Thomas lost his hat there."));
  await step(stage, 1, { text: PLAIN_ANSWER, stats: { ...figures, first_delta_ms: 400 } });
  return DONE;
};

/** The quota is used up for a while; it waits until the user stops it. */
export const waitsForQuota: Script = async (stage) => {
  stage.emit({ kind: "step_started", step: 0, tools: [] });
  stage.emit({ kind: "retrying", after_ms: 42_000, attempt: 2, reason: "rate_limited", message: MINUTE_QUOTA });
  return stage.forever();
};

/** The stream breaks after text was shown: it stays, and is never begun anew by itself. */
export const brokeOff: Script = async (stage) => {
  const text = "Thomas lost his hat in front of the opera house, where it";
  stage.emit({ kind: "step_started", step: 0, tools: [] });
  stage.emit({ kind: "text_delta", text });
  stage.emit({
    kind: "step_finished",
    step: 0,
    message_id: "m0",
    message: { parts: [{ type: "text", text }], model: "gemini-flash", incomplete: true },
    finish: "failed",
    stats: stats(800, 0, 12),
  });
  return {
    type: "failed",
    error: {
      code: { type: "model", model: "incomplete" },
      message: "the reply of aiplatform.googleapis.com broke off",
      hint: null,
      detail: null,
    },
  };
};

/** Something has to be switched on elsewhere; the way there is a link. */
export const notEnabled: Script = async (stage) => {
  stage.emit({ kind: "step_started", step: 0, tools: [] });
  return {
    type: "failed",
    error: {
      code: { type: "model", model: "not_enabled" },
      message: "the Vertex AI API is not enabled for the project `notes-of-lena-481516`",
      hint: "Switch it on at https://console.developers.google.com/apis/api/aiplatform.googleapis.com/overview?project=notes-of-lena-481516, wait a few minutes, then try again.",
      detail: { status: "PERMISSION_DENIED", reason: "SERVICE_DISABLED" },
    },
  };
};
