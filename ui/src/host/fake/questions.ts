// Questions of servers in the turns of the fake host.
import type { FormField, Question, QuestionAnswer, TurnOutcome } from "../../bindings/core";
import { call, MODEL, result, runCall, stats, step, type Script } from "./script";

const DONE: TurnOutcome = { type: "completed" };

const fields: FormField[] = [
  {
    name: "name",
    title: "Name",
    description: "As it stands on the ticket",
    required: true,
    kind: { type: "text", format: null, min_length: 2, max_length: 40, pattern: null },
    default: null,
  },
  {
    name: "email",
    title: "E-mail",
    description: null,
    required: true,
    kind: { type: "text", format: "email", min_length: null, max_length: null, pattern: null },
    default: null,
  },
  {
    name: "seats",
    title: "Seats",
    description: null,
    required: true,
    kind: { type: "number", integer: true, minimum: 1, maximum: 6 },
    default: 2,
  },
  {
    name: "date",
    title: "Day",
    description: null,
    required: false,
    kind: { type: "text", format: "date", min_length: null, max_length: null, pattern: null },
    default: null,
  },
  {
    name: "class",
    title: "Class",
    description: null,
    required: true,
    kind: {
      type: "choice",
      options: [
        { value: "1", title: "First" },
        { value: "2", title: "Second" },
      ],
    },
    default: "2",
  },
  {
    name: "extras",
    title: "Extras",
    description: "Two at most",
    required: false,
    kind: {
      type: "choices",
      options: [
        { value: "bike", title: "A bicycle" },
        { value: "dog", title: "A dog" },
        { value: "quiet", title: "Quiet carriage" },
      ],
      min_items: null,
      max_items: 2,
    },
    default: ["quiet"],
  },
  {
    name: "news",
    title: "Send me news",
    description: null,
    required: false,
    kind: { type: "toggle" },
    default: false,
  },
];

export const form: Question = {
  type: "form",
  message: "Who travels to Bergen?\u200b Fill in one traveller.",
  fields,
  schema: { type: "object" },
};

export const address: Question = {
  type: "url",
  message: "Sign in at the railway to go on.",
  url: "https://login.xn--bhn-qla.example/authorize?session=8f31c0d2&return=https%3A%2F%2Fbahn.example%2Fdone",
  elicitation_id: "e1",
};

export const sampling: Question = {
  type: "sampling",
  model: MODEL,
  request: {
    system: "You write short summaries.",
    messages: [{ role: "user", parts: [{ type: "text", text: "Summarise: two weeks with Thomas and no car." }] }],
    tools: [],
    sampling: {
      temperature: null,
      top_p: null,
      top_k: null,
      min_p: null,
      repeat_penalty: null,
      frequency_penalty: null,
      presence_penalty: null,
      seed: null,
      max_tokens: 200,
      stop: [],
    },
    hints: [],
  },
};

/** A call that asks, and tells what it was answered. */
export function asks(question: Question): Script {
  return async (stage) => {
    const one = call("everything__trigger-elicitation-request", { destination: "Bergen" });
    await step(stage, 0, { calls: [one] });
    stage.emit({ kind: "tool_started", call: one });
    const { id, answer } = await stage.question(one, question);
    if (question.type === "sampling" && answer.answer === "accepted") {
      stage.emit({
        kind: "sample_finished",
        call: one.id,
        question_id: id,
        message: { parts: [{ type: "text", text: "A fortnight by rail." }], model: MODEL, incomplete: false },
        finish: "stop",
        stats: stats(40, 0, 8),
      });
      await stage.question(one, {
        type: "sampling_reply",
        message: { parts: [{ type: "text", text: "A fortnight by rail." }], model: MODEL, incomplete: false },
        model: MODEL,
        finish: "stop",
      });
    }
    await runCall(stage, one, result(one, told(answer)));
    await step(stage, 1, { text: told(answer) });
    return DONE;
  };
}

function told(answer: QuestionAnswer): string {
  return answer.answer === "accepted" ? `accepted: ${JSON.stringify(answer.content ?? {})}` : answer.answer;
}
