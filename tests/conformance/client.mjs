// What the conformance suite starts for each of its scenarios: `lectern mcp probe` with the address that comes last.
// It knows no scenario. What a scenario hands over (MCP_CONFORMANCE_CONTEXT) becomes flags, as a person would type them.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}");
const calls = (context.toolCalls ?? []).flatMap((call) => ["--call", call.name, JSON.stringify(call.arguments ?? {})]);
const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`;
const flag = (name, value) => (value === undefined ? [] : [name, value]);

const probe = spawnSync(
  process.env.LECTERN,
  [
    ...["mcp", "probe", "--json", "--timeout", "60", "--elicitation", "accept-defaults"],
    ...["--browser-command", [process.execPath, join(import.meta.dirname, "browser.mjs")].map(quoted).join(" ")],
    // The suite's own name of a client that describes itself in a document.
    ...["--cimd-url", "https://conformance-test.local/client-metadata.json"],
    ...flag("--client-id", context.client_id),
    ...flag("--client-secret", context.client_secret),
    ...(calls.length > 0 ? calls : ["--call-all"]),
    process.argv.at(-1),
  ],
  { stdio: "inherit" },
);
process.exit(probe.status ?? 1);
