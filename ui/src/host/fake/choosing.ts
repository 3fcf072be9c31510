// A turn in which everything that decides about tools, settings and room has something to say.
import type { Exposure, Fit } from "../../bindings/core";
import type { StepSaid } from "../../fold/turn";
import { call, result, runCall, stats, step, type Script } from "./script";

const gate: Exposure["gate"] = {
  open: true,
  answer: true,
  took_ms: 92,
  usage: { prompt_tokens: 301, reused_tokens: 288, generated_tokens: 1, prompt_ms: 60, generation_ms: 32 },
};

const exposure: Exposure = {
  policy: "relevant",
  reason: "policy",
  chosen: [
    { tool: "notes__search_notes", why: "pinned", score: null },
    { tool: "notes__read_note", why: "relevant", score: 3.52 },
    {
      tool: "somewhere__a_tool_with_a_very_long_name_that_nobody_can_read_in_one_line_of_this_panel",
      why: "room",
      score: 0.1,
    },
  ],
  left_out: [
    { tool: "notes__create_note", score: 0.5 },
    { tool: "files__word_count", score: null },
  ],
  left_out_count: 41,
  ...(gate ? { gate } : {}),
};

const fit: Fit = {
  tokens: 5012,
  exact: true,
  room: 7168,
  shortened: [{ call: "call_0", tool: "notes__read_note", from: 61_200, to: 4100 }],
  summary: {
    up_to: "message-1",
    messages: 12,
    text: "The user plans a trip to Lyon and has eaten at <b>two</b> places there.",
    new: true,
  },
};

const settings: StepSaid["settings"] = {
  sampling: {
    temperature: Math.fround(0.7),
    top_p: Math.fround(0.95),
    top_k: 40,
    min_p: null,
    repeat_penalty: Math.fround(1.1),
    frequency_penalty: null,
    presence_penalty: null,
    seed: 42,
    max_tokens: 1024,
    stop: ["\n\nUser:"],
  },
  thinking: { enabled: true, budget: 512 },
  answer: "json_schema",
  context_length: 8192,
};

export const chosenTools: Script = async (stage) => {
  const said: StepSaid = { exposure, settings, fit };
  const tools = exposure.chosen?.map(({ tool }) => tool) ?? [];
  const search = call("notes__search_notes", { query: "Lyon" });
  const figures = stats(5012, 4700, 31);
  const usage = { ...figures.usage, guessed_tokens: 20, right_guesses: 13, changed_at: { part: "tools" as const } };
  await step(stage, 0, { thinking: "Which one is meant?", calls: [search], tools, said, stats: { ...figures, usage } });
  await runCall(stage, search, result(search, "[1] Lyon (Travel/Lyon.md)\nBouchon, Rue Mercière."));
  const again = call("notes__search_notes", { query: "Lyon" });
  await step(stage, 1, { calls: [again], tools, said: { exposure: { ...exposure, reason: "wanted" } } });
  const note = { type: "repeated", first: search.id } as const;
  stage.emit({
    kind: "tool_finished",
    message_id: "m",
    result: result(again, "[1] Lyon (Travel/Lyon.md)\nBouchon, Rue Mercière.", { note }),
  });
  await step(stage, 2, { tools: [], said: { exposure: bare("synthesis") }, stats: stats(5200, 5100, 0) });
  await step(stage, 3, {
    text: "The other one is in Rue Mercière.",
    tools: [],
    said: { exposure: bare("empty_answer") },
  });
  return { type: "completed" };
};

function bare(reason: Exposure["reason"]): Exposure {
  return { policy: "deciding", reason, left_out_count: 0 };
}
