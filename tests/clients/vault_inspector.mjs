// The notes server through the command line of `@modelcontextprotocol/inspector`.
// Usage: node vault_inspector.mjs SERVER [ARGUMENT...] (run where the package is installed); a folder is added last.
// Prints one line per check; the exit status is 0 only when all of them held.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const server = process.argv.slice(2);
if (server.length === 0) throw new Error("usage: node vault_inspector.mjs SERVER [ARGUMENT...]");
const folder = mkdtempSync(join(tmpdir(), "vault-inspector-"));
writeFileSync(join(folder, "Bees.md"), "# Bees\n\nThe hive by the wall gave eleven kilos.\n");

const inspector = join(process.cwd(), "node_modules", ".bin", "mcp-inspector");
const ask = (...options) => {
  const output = execFileSync(inspector, ["--cli", ...server, folder, ...options], { encoding: "utf8", timeout: 120_000 });
  return JSON.parse(output);
};

let checks = 0;
const check = (name, run) => {
  run();
  console.log(`ok ${++checks} ${name}`);
};

try {
  check("tools/list", () => assert.equal(ask("--method", "tools/list").tools.length, 5));
  check("tools/call search_notes", () => {
    const result = ask("--method", "tools/call", "--tool-name", "search_notes", "--tool-arg", "query=How many kilos did the hive give?");
    assert.equal(result.content[0].text, "[1] Bees (Bees.md)\nThe hive by the wall gave eleven kilos.");
    assert.equal(result.structuredContent.hits[0].path, "Bees.md");
  });
  check("tools/call list_notes with a number", () => {
    const result = ask("--method", "tools/call", "--tool-name", "list_notes", "--tool-arg", "limit=1");
    assert.equal(result.content[0].text, "- Bees.md");
  });
  check("resources/list", () => assert.equal(ask("--method", "resources/list").resources[0].uri, "note:///Bees.md"));
  check("resources/read", () => {
    const result = ask("--method", "resources/read", "--uri", "note:///Bees.md");
    assert.match(result.contents[0].text, /eleven kilos/);
  });
  check("resources/templates/list", () => assert.equal(ask("--method", "resources/templates/list").resourceTemplates.length, 1));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (checks !== 6) process.exitCode = 1;
