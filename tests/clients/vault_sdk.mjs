// The notes server as `@modelcontextprotocol/sdk` sees it. Usage: node vault_sdk.mjs SERVER... -- (run where the
// package is installed). The last argument of the server's command is replaced by a folder of its own.
// Prints one line per check; the exit status is 0 only when all of them held.
import assert from "node:assert/strict";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are looked for where the command runs, not beside this file.
const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
const { ResourceListChangedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");

const [command, ...args] = process.argv.slice(2);
if (!command) throw new Error("usage: node vault_sdk.mjs SERVER [ARGUMENT...]; a folder is added as the last argument");

const folder = mkdtempSync(join(tmpdir(), "vault-sdk-"));
mkdirSync(join(folder, "Boat"));
writeFileSync(join(folder, "Boat", "Log of the Petrel.md"), "# Log of the Petrel\n\nCrossed to Cherbourg in eleven hours.\n");
writeFileSync(join(folder, "搬家.md"), "# 搬家\n\n房东姓顾，月租七千八百元。\n");

let checks = 0;
const check = (name, run) => run().then(() => console.log(`ok ${++checks} ${name}`));
const client = new Client({ name: "vault-sdk-test", version: "1.0.0" }, { capabilities: {} });
const changed = new Promise((resolve) => client.setNotificationHandler(ResourceListChangedNotificationSchema, resolve));
const text = (result) => result.content[0].text;
const call = (name, input) => client.callTool({ name, arguments: input });

try {
  await client.connect(new StdioClientTransport({ command, args: [...args, folder] }));
  await check("tools are listed with output schemas", async () => {
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((t) => t.name), ["list_notes", "search_notes", "read_note", "create_note", "append_note"]);
    assert.ok(tools.every((t) => t.outputSchema && t.annotations && t.title));
  });
  // From here on the SDK itself validates each structured result against the output schema.
  await check("a question is answered with its source", async () => {
    const result = await call("search_notes", { query: "How long was the crossing to Cherbourg?" });
    assert.match(text(result), /^\[1\] Log of the Petrel \(Boat\/Log of the Petrel\.md\)\n/);
    assert.equal(result.structuredContent.hits[0].startLine, 3);
  });
  await check("Chinese is found", async () => {
    assert.match(text(await call("search_notes", { query: "月租是多少？" })), /七千八百元/);
  });
  await check("a note is read, written and added to", async () => {
    assert.match(text(await call("read_note", { path: "log of the petrel" })), /^# Log of the Petrel/);
    assert.equal(text(await call("create_note", { path: "Été/Plan", content: "# Plan" })), "Created Été/Plan.md");
    assert.equal(text(await call("append_note", { path: "Été/Plan.md", content: "Partir tôt." })), "Appended to Été/Plan.md");
    assert.equal(readFileSync(join(folder, "Été", "Plan.md"), "utf8"), "# Plan\n\nPartir tôt.\n");
  });
  await check("a failure is a result", async () => {
    const result = await call("read_note", { path: "../secret" });
    assert.equal(result.isError, true);
  });
  await check("resources are listed and read", async () => {
    const { resources } = await client.listResources();
    assert.equal(resources.length, 3);
    const { contents } = await client.readResource({ uri: resources.find((r) => r.title === "搬家").uri });
    assert.match(contents[0].text, /房东姓顾/);
    await assert.rejects(client.readResource({ uri: "note:///missing.md" }));
  });
  await check("a new file is announced", async () => {
    writeFileSync(join(folder, "New.md"), "# New\n");
    await changed;
  });
} finally {
  await client.close();
  rmSync(folder, { recursive: true, force: true });
}
if (checks !== 7) process.exitCode = 1;
