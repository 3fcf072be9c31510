// Stands before a server and asks the user before each call of a tool: node asking.mjs form|url COMMAND [ARGUMENT...]
// Invariant: a call reaches the server only after a yes, with the user's answer as its first log line.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [mode, command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ["pipe", "inherit", "inherit"] });
server.on("exit", (code) => process.exit(code ?? 1));

const schema = {
  type: "object",
  properties: {
    reader: { type: "string", title: "Who reads?", minLength: 2 },
    volume: { type: "string", title: "How loud?", enum: ["soft", "loud"], default: "soft" },
  },
  required: ["reader"],
};
const questions = {
  form: { message: "Before I look it up:", requestedSchema: schema },
  url: { mode: "url", message: "Look here first.", url: "https://example.org/first?x=1", elicitationId: "e1" },
};

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const waiting = new Map();
let next = 1;

const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  const message = JSON.parse(line);
  // The era in which a server may ask by a request of its own.
  if (message.method === "server/discover") {
    return say({ id: message.id, error: { code: -32601, message: "method not found" } });
  }
  if (message.method === "tools/call") {
    const id = `ask-${next++}`;
    waiting.set(id, { line, call: message.id });
    return say({ id, method: "elicitation/create", params: questions[mode] });
  }
  const asked = message.method === undefined && waiting.get(message.id);
  if (!asked) return void server.stdin.write(`${line}\n`);
  waiting.delete(message.id);
  process.stderr.write(`answered: ${JSON.stringify(message.result ?? message.error)}\n`);
  if (message.result?.action === "accept") return void server.stdin.write(`${asked.line}\n`);
  const text = `the user did not say yes: ${message.result?.action}`;
  say({ id: asked.call, result: { content: [{ type: "text", text }], isError: true } });
});
input.on("close", () => server.stdin.end());
