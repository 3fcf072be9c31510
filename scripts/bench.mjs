// What prefix reuse saves, by the figures that Lectern itself reports: node bench.mjs LECTERN
// Invariant: every figure printed was measured in this run; nothing is extrapolated.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const lectern = process.argv[2];
const home = mkdtempSync(join(tmpdir(), "lectern-bench-"));

function ask(text, ...options) {
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

try {
  console.log("".padEnd(44) + ["prompt", "reused", "evaluated", "ms"].map((head) => head.padStart(10)).join(""));
  const first = ask("What does error E7 on the heat pump mean?");
  first.steps.forEach((usage, index) => row(`one question, step ${index + 1}`, usage));
  const second = ask("Where did Thomas lose his hat in Norway?", "--conversation", first.conversation);
  second.steps.forEach((usage, index) => {
    row(index === 0 ? "next question, a process that knows nothing" : `next question, step ${index + 1}`, usage);
  });
  const [cold, ...warm] = second.steps;
  const last = warm.at(-1);
  if (last?.prompt_ms && cold.prompt_ms) {
    const ratio = cold.prompt_ms / last.prompt_ms;
    console.log(`\nWithout reuse ${cold.prompt_ms} ms for ${cold.prompt_tokens} tokens; with reuse ${last.prompt_ms} ms`);
    console.log(`for ${last.prompt_tokens} tokens, of which ${last.reused_tokens} were reused: ${ratio.toFixed(1)} times faster.`);
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
