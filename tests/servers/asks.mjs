// An MCP server of 2026-07-28, or with `legacy` of 2025-11-25, that asks its host for things, well or badly.
// Written by hand, line by line: it has to do what no library would let it do.
import { createInterface } from "node:readline";

const legacy = process.argv[2] === "legacy";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const form = (name) => ({
  method: "elicitation/create",
  params: {
    message: `What is ${name}?`,
    requestedSchema: { type: "object", properties: { [name]: { type: "string", default: "bread" } } },
  },
});
const text = (value) => ({ content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] });
const complete = (value) => ({ resultType: "complete", ...text(value) });

let counter = 0;
let asked = 0;
let answered = [];
const tasks = new Map();

const tools = {
  // Two rounds of input; the state has to come back as it was.
  rounds(id, params) {
    const state = { none: "first", first: "second", second: "done" }[params.requestState ?? "none"];
    if (state === "done") return send({ id, result: complete({ last: params.inputResponses }) });
    send({ id, result: { resultType: "input_required", requestState: state, inputRequests: { [state]: form(state) } } });
  },
  "rounds-forever"(id) {
    send({ id, result: { resultType: "input_required", requestState: "again", inputRequests: { a: form("a") } } });
  },
  "state-only"(id, params) {
    if (params.requestState === "s") return send({ id, result: complete("resumed") });
    send({ id, result: { resultType: "input_required", requestState: "s" } });
  },
  "input-nonsense"(id) {
    send({ id, result: { resultType: "input_required", inputRequests: { a: { method: "no/such", params: {} } } } });
  },
  task(id) {
    const task = { taskId: "t", status: "working", statusMessage: "begun", createdAt: "", lastUpdatedAt: "", ttlMs: null, pollIntervalMs: 60 };
    tasks.set("t", { ...task, polls: 0 });
    send({ id, result: { resultType: "task", ...task } });
  },
  "task-never"(id) {
    tasks.set("n", { taskId: "n", status: "working", pollIntervalMs: 60, polls: 0, never: true });
    send({ id, result: { resultType: "task", taskId: "n", status: "working", pollIntervalMs: 60 } });
  },
  "task-failed"(id) {
    tasks.set("f", { taskId: "f", status: "failed", error: { code: -32000, message: "the oven is cold" } });
    send({ id, result: { resultType: "task", taskId: "f", status: "working", pollIntervalMs: 60 } });
  },
  counter(id) {
    counter += 1;
    send({ id, result: { ...complete(`${counter}`), ttlMs: 60_000 } });
  },
  "counter-write"(id) {
    counter += 1;
    send({ id, result: { ...complete(`${counter}`), ttlMs: 60_000 } });
  },
  // A thousand questions, and the result does not wait for the answers.
  flood(id) {
    for (let n = 0; n < 1_000; n++) send({ id: `q${asked++}`, ...form(`q${n}`) });
    setTimeout(() => send({ id, result: text({ answers: answered.length }) }), 300);
  },
  // Asks, takes the question back, and asks with ids that no request has.
  "bad-ids"(id) {
    send({ id: "gone", ...form("gone") });
    send({ method: "notifications/cancelled", params: { requestId: "gone" } });
    send({ id: "twice", ...form("one") });
    send({ id: "twice", ...form("two") });
    send({ id: { an: "object" }, ...form("three") });
    send({ id: true, ...form("four") });
    setTimeout(() => send({ id, result: text(answered) }), 400);
  },
  "asks-later"(id) {
    send({ id, result: text("see you") });
    setTimeout(() => send({ id: "later", ...form("later") }), 100);
  },
  answers(id) {
    send({ id, result: text(answered) });
  },
  sleep(id) {
    setTimeout(() => send({ id, result: text("slept") }), 300);
  },
};

// A third argument names the only tool that is listed.
const shown = Object.keys(tools).filter((name) => !process.argv[3] || name === process.argv[3]);
const listed = shown.map((name) => ({
  name,
  inputSchema: { type: "object" },
  annotations: { readOnlyHint: name === "counter" },
}));

const methods = {
  "server/discover": (id) =>
    legacy
      ? send({ id, error: { code: -32601, message: "Method not found" } })
      : send({
          id,
          result: {
            resultType: "complete",
            supportedVersions: ["2026-07-28"],
            capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
          },
        }),
  initialize: (id) =>
    send({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "asks", version: "1" } } }),
  "tools/list": (id) => send({ id, result: { resultType: "complete", tools: listed } }),
  "tools/call": (id, params) => tools[params.name](id, params),
  "tasks/get"(id, { taskId }) {
    const task = tasks.get(taskId);
    task.polls = (task.polls ?? 0) + 1;
    if (taskId === "t" && task.polls === 2) {
      task.status = "input_required";
      task.inputRequests = { spice: form("spice") };
    }
    const { polls: _, never: __, ...shown } = task;
    send({ id, result: { resultType: "complete", ...shown } });
  },
  "tasks/update"(id, { taskId, inputResponses }) {
    const task = tasks.get(taskId);
    delete task.inputRequests;
    task.status = "completed";
    task.result = text({ spice: inputResponses.spice });
    send({ id, result: { resultType: "complete" } });
  },
  "tasks/cancel"(id, { taskId }) {
    answered.push({ cancelled: taskId });
    send({ id, result: { resultType: "complete" } });
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined) answered.push({ id: message.id, result: message.result, error: message.error?.code });
  else if (message.id === undefined) return;
  else if (methods[message.method]) methods[message.method](message.id, message.params);
  else send({ id: message.id, error: { code: -32601, message: "Method not found" } });
});
