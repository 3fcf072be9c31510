// Says of a part of the tests what failed in it, from its log: `failed.mjs names|words FORMAT LOG [REPORT]`.
// FORMAT is `cargo`, `vitest` (with its JSON report), `lines` (`ok` and `not ok`) or `check` (one command).
// Invariant: says something of every part that failed, also of one whose log or report can't be read.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** Lines of a failed test's own output, and of the whole log. */
const OWN_LINES = 40;
const LAST_LINES = 60;

/** A failed test: its name, and what it said. */
export function failedIn(format, log, report = "") {
  switch (format) {
    case "cargo":
      return cargo(log);
    case "vitest":
      return vitest(report);
    case "lines":
      return lines(log);
    default:
      return [];
  }
}

/** Names before the last lines; the runner says the names once more at its end. */
export function words(failed, log) {
  const said = failed.flatMap(({ name, says }) => [`--- ${name}`, ...cut(says, OWN_LINES)]);
  return [...said, `--- the last lines of its log`, ...cut(plain(log), LAST_LINES, true)].join("\n");
}

function cargo(log) {
  const failed = [];
  let program = "";
  let ended = true;
  const died = () => {
    if (!ended) failed.push({ name: `${program} (died, or did not end)`, says: "" });
  };
  for (const line of plain(log).split("\n")) {
    const running = /^ {5}Running (.*)$/.exec(line);
    if (running) {
      died();
      program = running[1].replace(/^unittests /, "").replace(/ \(.*\)$/, "");
      ended = false;
    }
    const missed = /^test (.*) \.\.\. FAILED$/.exec(line) ?? /^test (\S+) \.\.\..*FAILED$/.exec(line);
    if (missed) failed.push({ name: `${program}: ${missed[1]}`, says: output(plain(log), missed[1]) });
    if (line.startsWith("test result: ")) ended = true;
  }
  died();
  const broken = plain(log).match(/^error(\[E\d+\])?: .*$/gm)?.filter((line) => !/^error: (test failed|\d+ targets? failed)/.test(line));
  return failed.length > 0 ? failed : (broken ?? []).slice(0, 5).map((line) => ({ name: line, says: "" }));
}

/** What libtest kept of a test's output. */
function output(log, name) {
  const begin = log.indexOf(`\n---- ${name} stdout ----\n`);
  if (begin < 0) return "";
  const rest = log.slice(begin + name.length + 18);
  const end = rest.search(/\n(---- .* stdout ----|failures:)\n/);
  return end < 0 ? rest : rest.slice(0, end);
}

function vitest(report) {
  let results;
  try {
    results = JSON.parse(report).testResults;
  } catch {
    return [{ name: "no report: the run ended before its end", says: "" }];
  }
  return results.flatMap(({ name, message, status, assertionResults }) => {
    const file = name.replace(/^.*\/ui\//, "");
    const missed = assertionResults.filter((one) => one.status === "failed");
    if (status === "failed" && missed.length === 0) return [{ name: file, says: plain(message ?? "") }];
    return missed.map((one) => ({ name: `${file}: ${one.fullName}`, says: plain((one.failureMessages ?? []).join("\n")) }));
  });
}

function lines(log) {
  return [...plain(log).matchAll(/^not ok (.*)$/gm)].map(([, name]) => ({ name, says: "" }));
}

/** Without the colours of a terminal. */
function plain(text) {
  return text.replace(/\u001b\[[0-9;]*m/g, "");
}

function cut(text, most, fromEnd = false) {
  const all = text.split("\n").filter((line) => line.trim() !== "");
  if (all.length <= most) return all;
  return fromEnd ? all.slice(-most) : [...all.slice(0, most), `(${all.length - most} more lines are in the log)`];
}

function read(path) {
  try {
    return path ? readFileSync(path, "utf8") : "";
  } catch {
    return "";
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [, , what, format, log, report] = process.argv;
  const failed = failedIn(format, read(log), read(report));
  if (what === "names") console.log(failed.map(({ name }) => name).join("\n"));
  else console.log(words(failed, read(log)));
}
