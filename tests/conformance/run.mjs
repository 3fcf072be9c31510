// Runs the client scenarios that each revision requires against `lectern mcp probe`.
// Usage: node run.mjs LECTERN (run where the package is installed). Prints one line per scenario; the exit status is 0
// only when every required scenario passed, each with at least one check: the suite's own status can hide a failure.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const REVISIONS = { "2025-11-25": 18, "2026-07-28": 32 };
const lectern = resolve(process.argv[2] ?? "");
if (process.argv.length !== 3) throw new Error("usage: node run.mjs LECTERN");

// The names under `client:` in the suite's own list of requirements.
const required = (revision) => {
  const file = join("node_modules", "@modelcontextprotocol", "conformance", "requirements", `${revision}.yaml`);
  const [, rest] = readFileSync(file, "utf8").split(/^client:\n/m);
  return rest.split(/^\S/m)[0].match(/^  - \S+$/gm).map((line) => line.slice(4));
};

const run = (revision, folder) =>
  new Promise((done) => {
    const suite = join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js");
    const options = ["--requirements", revision, "--timeout", "120000", "-o", join(folder, revision)];
    const child = spawn(process.execPath, [suite, "client", "--command", "node client.mjs", ...options], {
      env: { ...process.env, LECTERN: lectern, LECTERN_HOME: join(folder, "home") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    child.stdout.on("data", (text) => (said += text));
    child.stderr.on("data", (text) => (said += text));
    child.on("close", () => done(said));
  });

const folder = mkdtempSync(join(tmpdir(), "lectern-conformance-"));
let number = 0;
let missed = 0;
const tell = (fine, what) => {
  if (!fine) missed += 1;
  console.log(`${fine ? "ok" : "not ok"} ${++number} ${what}`);
};

for (const [revision, count] of Object.entries(REVISIONS)) {
  const said = await run(revision, folder);
  const wanted = required(revision);
  const passed = new Map();
  for (const [, name, checks, failed] of said.matchAll(/^✓ (\S+): (\d+) passed, (\d+) failed/gm)) {
    if (Number(checks) > 0 && Number(failed) === 0) passed.set(name, Number(checks));
  }
  const before = missed;
  for (const name of wanted) tell(passed.has(name), `${revision} ${name}: ${passed.get(name) ?? "no"} checks`);
  if (wanted.length !== count) tell(false, `${revision} requires ${wanted.length} scenarios instead of ${count}`);
  if (missed > before) console.log(said);
}
rmSync(folder, { recursive: true, force: true });
process.exit(missed === 0 ? 0 : 1);
