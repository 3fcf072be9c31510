// The local API as the `openai` package of Node sees it. Usage: node api_openai.mjs LECTERN (run where the package is
// installed). Prints one line per check; the exit status is 0 only when all of them held.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const { default: OpenAI } = await import(pathToFileURL(require.resolve("openai")).href);
const [lectern] = process.argv.slice(2);
if (!lectern) throw new Error("usage: node api_openai.mjs LECTERN");

const home = mkdtempSync(join(tmpdir(), "api-openai-"));
const children = [];
const start = async (command, args) => {
  const env = { ...process.env, LECTERN_HOME: home, LECTERN_KEYRING: "off" };
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"], env });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error(`${command} said nothing`);
};
let checks = 0;
const check = (name, run) => run().then(() => console.log(`ok ${++checks} ${name}`));
const tool = { type: "function", function: { name: "weather", description: "The weather.", parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } } };
const user = (content) => [{ role: "user", content }];
const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";

try {
  const upstream = await start(process.execPath, [join(dirname(fileURLToPath(import.meta.url)), "api_upstream.mjs")]);
  const said = JSON.parse(await start(lectern, ["serve", "--port", "0", "--json", "--model", "upstream", "--base-url", `${upstream}/v1`]));
  const client = new OpenAI({ baseURL: `${said.url}/v1`, apiKey: said.key, maxRetries: 0 });
  const chat = (body, options) => client.chat.completions.create({ model: "upstream", ...body }, options);

  await check("models", async () => {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    assert.ok(ids.includes("upstream"));
    assert.equal((await client.models.retrieve("upstream")).object, "model");
    await assert.rejects(client.models.retrieve("nobody"), OpenAI.NotFoundError);
  });
  await check("plain", async () => {
    const answer = await chat({ messages: user("hi") });
    assert.equal(answer.choices[0].message.content, "Grüß Gott, Welt.");
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.total_tokens, 16);
  });
  await check("streaming with usage", async () => {
    let text = "", usage;
    for await (const chunk of await chat({ messages: user("hi"), stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, "Grüß Gott, Welt.");
    assert.equal(usage.completion_tokens, 5);
  });
  for (const count of [1, 2, 5]) {
    await check(`tools, ${count} at once, and back`, async () => {
      const messages = user(`calls ${count}`);
      const whole = await chat({ messages, tools: [tool] });
      assert.equal(whole.choices[0].finish_reason, "tool_calls");
      const runner = client.chat.completions.stream({ model: "upstream", messages, tools: [tool] });
      const message = (await runner.finalChatCompletion()).choices[0].message;
      assert.equal(message.tool_calls.length, count);
      assert.equal(new Set(message.tool_calls.map((call) => call.id)).size, count);
      assert.deepEqual(message.tool_calls.map((call) => JSON.parse(call.function.arguments).city), [...Array(count).keys()].map(String));
      const results = message.tool_calls.map((call, index) => ({ role: "tool", tool_call_id: call.id, content: `r${index}` }));
      const answer = await chat({ messages: [...messages, message, ...results], tools: [tool] });
      assert.equal(answer.choices[0].message.content, [...Array(count).keys()].map((index) => `r${index}`).join(" and "));
    });
  }
  await check("a schema", async () => {
    const schema = { type: "object", properties: { city: { type: "string" }, degrees: { type: "number" } }, required: ["city", "degrees"], additionalProperties: false };
    const answer = await chat({ messages: user("json"), response_format: { type: "json_schema", json_schema: { name: "weather", schema, strict: true } } });
    assert.deepEqual(JSON.parse(answer.choices[0].message.content), { city: "Rom", degrees: 30 });
  });
  await check("an image", async () => {
    const content = [{ type: "text", text: "What is it?" }, { type: "image_url", image_url: { url: pixel, detail: "low" } }];
    assert.equal((await chat({ messages: user(content) })).choices[0].message.content, "I see an image.");
  });
  await check("each class of error", async () => {
    const refused = async (promise, kind, code) => {
      const error = await promise.then(() => assert.fail("it was served"), (error) => error);
      assert.ok(error instanceof kind, `${error}`);
      if (code) assert.equal(error.code, code);
    };
    await refused(chat({ messages: user("hi"), n: 2 }), OpenAI.BadRequestError, "unsupported_value");
    await refused(chat({ messages: user("hi"), model: "nobody" }), OpenAI.NotFoundError, "model_not_found");
    await refused(chat({ messages: user("fail 401") }), OpenAI.InternalServerError, "provider_unauthorized");
    await refused(chat({ messages: user("fail 429 insufficient_quota") }), OpenAI.RateLimitError, "insufficient_quota");
    await refused(chat({ messages: user(null) }), OpenAI.BadRequestError, "missing_required_parameter");
    const broken = await chat({ messages: user("break"), stream: true });
    await refused((async () => { for await (const _ of broken); })(), OpenAI.APIError, "answer_broke_off");
    const wrong = new OpenAI({ baseURL: `${said.url}/v1`, apiKey: "sk-wrong", maxRetries: 0 });
    await refused(wrong.models.list(), OpenAI.AuthenticationError, "invalid_api_key");
    await refused(client.get("/models", { headers: { origin: "https://evil.example" } }), OpenAI.PermissionDeniedError, "origin_not_allowed");
  });
  await check("a runner of tools", async () => {
    const weather = { ...tool, function: { ...tool.function, parse: JSON.parse, function: ({ city }) => `r${city}` } };
    for (const stream of [false, true]) {
      const runner = client.chat.completions.runTools({ model: "upstream", messages: user("calls 2"), tools: [weather], stream });
      assert.equal(await runner.finalContent(), "r0 and r1");
    }
  });
  await check("big-agi's requests", async () => {
    const text = (words) => [{ type: "text", text: words }];
    const body = {
      model: "upstream", max_completion_tokens: 1024, temperature: 0.5, stream: true, stream_options: { include_usage: true },
      tools: [tool], tool_choice: "auto",
      messages: [
        { role: "system", content: "You are helpful." },
        { role: "user", content: [...text("What is it?"), { type: "image_url", image_url: { url: pixel, detail: "high" } }] },
        { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "call_1", content: "30" },
        { role: "assistant", content: "It is warm." },
        { role: "user", content: text("calls 2") },
      ],
    };
    const headers = { authorization: `Bearer ${said.key}`, "content-type": "application/json" };
    const response = await fetch(`${said.url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
    const frames = (await response.text()).split("\n\n").filter((frame) => frame.startsWith("data: ")).map((frame) => frame.slice(6));
    assert.equal(frames.pop(), "[DONE]");
    const chunks = frames.map((frame) => JSON.parse(frame));
    assert.deepEqual(chunks.pop().choices, []);
    const names = new Map();
    for (const { choices } of chunks) {
      assert.equal(choices.length, 1);
      const calls = choices[0].delta.tool_calls ?? [];
      assert.ok(calls.length <= 1);
      for (const { index, id, function: made } of calls) {
        // A later delta with a name or another id makes it throw.
        if (names.has(index)) assert.ok(!made.name && !id);
        else names.set(index, made.name);
      }
    }
    assert.deepEqual([...names.values()], ["weather", "weather"]);
  });
  await check("cancel ends the model's work", async () => {
    const stream = await chat({ messages: user("slow"), stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    stream.controller.abort();
    while ((await (await fetch(`${upstream}/open`)).text()) !== "0") await new Promise((resolve) => setTimeout(resolve, 20));
  });
} finally {
  children.forEach((child) => child.kill());
  rmSync(home, { recursive: true, force: true });
}
