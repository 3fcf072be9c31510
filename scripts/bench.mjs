// What a saved prompt brings, by the figures that Lectern itself reports: node bench.mjs LECTERN
// Invariant: every figure printed was measured in this run; nothing is extrapolated.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const lectern = process.argv[2];
const folder = mkdtempSync(join(tmpdir(), "lectern-bench-"));

/** The steps of a question, asked in a process of its own. */
function ask(home, text, ...options) {
  const output = execFileSync(lectern, ["ask", "--json", ...options, text], {
    env: { ...process.env, LECTERN_HOME: home },
    stdio: ["ignore", "pipe", "ignore"],
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  const events = output.trim().split("\n").map((line) => JSON.parse(line));
  const steps = events.filter((event) => event.kind === "step_finished").map((event) => event.stats.usage);
  return { conversation: events[0].conversation, steps };
}

function row(name, { prompt_tokens: prompt, reused_tokens: reused, prompt_ms: ms }) {
  const cells = [prompt, reused, prompt - reused, ms ?? "?"].map((cell) => String(cell).padStart(10));
  console.log(name.padEnd(44) + cells.join(""));
}

function sum(steps) {
  const total = { prompt_tokens: 0, reused_tokens: 0, prompt_ms: 0 };
  for (const step of steps) for (const key of Object.keys(total)) total[key] += step[key] ?? 0;
  return total;
}

try {
  const home = join(folder, "with");
  console.log("".padEnd(44) + ["prompt", "reused", "evaluated", "ms"].map((head) => head.padStart(10)).join(""));
  const first = ask(home, "What does error E7 on the heat pump mean?");
  first.steps.forEach((usage, index) => row(`first question, step ${index + 1}`, usage));

  // The same conversation twice: with what the first process saved, and without.
  const bare = join(folder, "without");
  cpSync(home, bare, { recursive: true });
  rmSync(join(bare, "cache", "kv"), { recursive: true, force: true });
  const next = ["Where did Thomas lose his hat in Norway?", "--conversation", first.conversation];
  const [saved, unsaved] = [sum(ask(home, ...next).steps), sum(ask(bare, ...next).steps)];
  row("next question, a new process with the state", saved);
  row("the same without it", unsaved);
  const evaluated = ({ prompt_tokens, reused_tokens }) => prompt_tokens - reused_tokens;
  console.log(`\nThe state saves ${evaluated(unsaved) - evaluated(saved)} tokens of ${evaluated(unsaved)}.`);
  console.log("The built-in model gets no earlier turns, so there is little to save; the part `local` measures a long one.");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
