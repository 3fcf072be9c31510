// @vitest-environment jsdom
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Host } from "./host";
import { tauriHost } from "./tauri";

interface Call {
  command: string;
  args: Record<string, unknown>;
}

let calls: Call[];

beforeEach(() => {
  calls = [];
  Object.assign(window, {
    __TAURI_INTERNALS__: {
      transformCallback: () => 1,
      unregisterCallback: () => undefined,
      invoke: (command: string, args: Record<string, unknown>) => {
        calls.push({ command, args });
        return Promise.resolve(null);
      },
    },
  });
});

afterEach(() => {
  Reflect.deleteProperty(window, "__TAURI_INTERNALS__");
});

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Calls every method once, with as many arguments as it has. */
async function all(): Promise<Map<string, Call>> {
  const host = tauriHost();
  const made = new Map<string, Call>();
  for (const name of Object.keys(host) as (keyof Host)[]) {
    calls = [];
    const method = host[name] as (...args: unknown[]) => Promise<unknown>;
    await method(...Array.from({ length: method.length }, (_, index) => (index === 0 ? () => undefined : index)));
    expect(calls).toHaveLength(1);
    made.set(name, calls[0] as Call);
  }
  return made;
}

it("each method is the command of its name", async () => {
  for (const [method, { command }] of await all()) expect(command).toBe(snake(method));
});

/** The parameters of the shell's commands that come from the page. */
function commandsOfShell(): Map<string, string[]> {
  const folder = join(import.meta.dirname, "../../../src-tauri/src/commands");
  const commands = new Map<string, string[]>();
  for (const file of readdirSync(folder)) {
    const text = readFileSync(join(folder, file), "utf8");
    for (const [, name, list] of text.matchAll(/#\[tauri::command[^\]]*\]\s*pub (?:async )?fn (\w+)\(([^)]*)\)/g)) {
      const own = /:\s*(?:AppHandle|Desk|State|Window|WebviewWindow)\b/;
      const parameters = (list ?? "")
        .split(/,(?![^<]*>)/)
        .map((one) => one.trim())
        .filter((one) => one !== "" && !own.test(one));
      commands.set(
        name ?? "",
        parameters.map((one) => one.split(":")[0]?.trim() ?? ""),
      );
    }
  }
  return commands;
}

it("the shell has each command, with the same arguments", async () => {
  const shell = commandsOfShell();
  expect(shell.size).toBeGreaterThan(0);
  for (const { command, args } of (await all()).values()) {
    expect([command, Object.keys(args).map(snake)]).toEqual([command, shell.get(command)]);
  }
});
