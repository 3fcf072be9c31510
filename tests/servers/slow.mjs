// Stands before a server and makes its tools slow: node slow.mjs MILLISECONDS COMMAND [ARGUMENT...]
// Invariant: everything is passed on as it came, in order; only calls of tools wait.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [millis, command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ["pipe", "inherit", "inherit"] });
server.on("exit", (code) => process.exit(code ?? 1));

let before = Promise.resolve();
const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  const slow = line.includes('"tools/call"');
  before = before
    .then(() => (slow ? new Promise((resume) => setTimeout(resume, Number(millis))) : undefined))
    .then(() => void server.stdin.write(`${line}\n`));
});
input.on("close", () => server.stdin.end());
