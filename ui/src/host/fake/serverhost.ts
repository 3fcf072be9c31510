// The servers' part of the fake host: keeps them in memory and does as a real one would.
import type {
  AppNews,
  AppView,
  DoctorCheck,
  DoctorReport,
  DoctorStep,
  FoundHost,
  ImportPreview,
  ImportRequest,
  ImportSource,
  LogPage,
  NamedValue,
  Problem,
  ServerDraft,
  ServerState,
  ServerView,
  ToolView,
  TrafficPage,
  TransportView,
} from "../../bindings/app";
import type { RuleEffect } from "../../bindings/core";
import type { ServerHost } from "../servers";
import { bare, messagesOf, PREVIEW, tool } from "./servers";

const READY: ServerState = { type: "ready" };

export class FakeServers implements ServerHost {
  protected view: AppView;
  protected news: (news: AppNews) => void = () => {};
  #removed = new Map<string, ServerView>();

  constructor(view: AppView) {
    this.view = view;
  }

  #find(id: string): ServerView {
    const server = this.view.servers.find((one) => one.id === id);
    if (!server) throw problem("unknown_server", `there is no server \`${id}\``);
    return server;
  }

  #change(id: string, change: Partial<ServerView>): ServerView {
    const server = { ...this.#find(id), ...change };
    this.view = { ...this.view, servers: this.view.servers.map((one) => (one.id === id ? server : one)) };
    this.news({ type: "server_changed", server });
    return server;
  }

  #set(servers: ServerView[]): void {
    this.view = { ...this.view, servers };
    this.news({ type: "servers_changed", servers });
  }

  #tool(name: string, change: Partial<ToolView>): void {
    const server = this.view.servers.find((one) => one.tools.some(({ spec }) => spec.name === name));
    if (!server) throw problem("unknown_tool", `there is no tool \`${name}\``);
    this.#change(server.id, {
      tools: server.tools.map((one) => (one.spec.name === name ? { ...one, ...change } : one)),
    });
  }

  async serverLog(id: string, after: number): Promise<LogPage> {
    const lines = [`${id}: listening on stdio`, `${id}: indexed 74 notes in 0.21 s`].slice(after);
    return { lines: lines.map((text, index) => ({ number: after + index, at: null, text })), next: 2 };
  }

  async serverTraffic(id: string, after: number): Promise<TrafficPage> {
    const messages = messagesOf(id);
    return { messages: messages.slice(after), next: messages.length };
  }

  async startServer(id: string): Promise<void> {
    this.#change(id, { state: { type: "starting", step: "spawn" } });
    setTimeout(() => this.#change(id, { state: { type: "starting", step: "handshake" } }), 150);
    setTimeout(() => this.#change(id, this.#started(id)), 600);
  }

  /** A command that is called “wrong” does not exist. */
  #started(id: string): Partial<ServerView> {
    const server = this.#find(id);
    if (/wrong/.test(server.command)) return { state: failed(id) };
    const tools = server.tools.length > 0 ? server.tools : [tool(id, "echo", "Says what it was told.")];
    return { state: READY, tools, protocol: "2025-11-25", starts: server.starts + 1 };
  }

  async stopServer(id: string): Promise<void> {
    this.#change(id, { state: { type: "stopped" } });
  }

  async restartServer(id: string): Promise<void> {
    await this.startServer(id);
  }

  async setServerEnabled(id: string, enabled: boolean): Promise<void> {
    this.#change(id, { enabled, ...(enabled ? {} : { state: { type: "stopped" } }) });
    if (enabled) await this.startServer(id);
  }

  async setServerTrusted(id: string, trusted: boolean): Promise<void> {
    this.#change(id, { trusted });
  }

  async approveServer(id: string, digest: string): Promise<void> {
    const { approval } = this.#find(id);
    if (changesMeanwhile() && approval.type === "changed") {
      const after = `${approval.after} --everything`;
      const servers = this.view.servers.map((one) =>
        one.id === id ? { ...one, approval: { ...approval, digest: "d2", after } } : one,
      );
      // No news: the window has to look by itself.
      this.view = { ...this.view, servers };
      changesMeanwhile(true);
    }
    const now = this.#find(id).approval;
    if (now.type !== "approved" && now.digest !== digest) throw CHANGED;
    this.#change(id, { approval: { type: "approved" } });
    await this.startServer(id);
  }

  async signIn(id: string): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 400));
    this.#change(id, { state: READY, auth: { type: "signed_in", issuer: "https://login.example.org" } });
  }

  async signOut(id: string): Promise<void> {
    this.#change(id, { state: { type: "needs_sign_in" }, auth: { type: "signed_out" } });
  }

  async saveServer(draft: ServerDraft): Promise<string> {
    const saved = (window as unknown as { savedDrafts?: ServerDraft[] }).savedDrafts ?? [];
    (window as unknown as { savedDrafts: ServerDraft[] }).savedDrafts = [...saved, draft];
    const id = draft.id ?? draft.name;
    const known = this.view.servers.find((one) => one.id === id);
    if (known && draft.id === null)
      throw problem("server_exists", `there is a server \`${id}\` already`, "Choose another name.");
    const transport = transportOf(draft, known);
    const command = transport.type === "stdio" ? [transport.command, ...transport.args].join(" ") : transport.url;
    const server: ServerView = {
      ...(known ?? bare(id, "")),
      transport,
      command,
      enabled: draft.enabled,
      trusted: draft.trusted,
      timeout_s: draft.timeout_s,
    };
    if (known) this.#change(id, server);
    else this.#set([...this.view.servers, server]);
    await this.startServer(id);
    return id;
  }

  async removeServer(id: string): Promise<string> {
    this.#removed.set(id, this.#find(id));
    this.#set(this.view.servers.filter((one) => one.id !== id));
    return id;
  }

  async restoreServer(token: string): Promise<void> {
    const server = this.#removed.get(token);
    if (server) this.#set([...this.view.servers, server]);
  }

  async knownHosts(): Promise<FoundHost[]> {
    return [{ host: "claude_desktop", path: "/home/lena/.config/Claude/claude_desktop_config.json", servers: 2 }];
  }

  async chooseImportFile(): Promise<string | null> {
    return "/home/lena/Downloads/github.mcpb";
  }

  async previewImport(source: ImportSource): Promise<ImportPreview> {
    if (source.type === "text" && !source.text.includes("{")) {
      throw problem("bad_mcp_config", "line 1: this is no JSON", "Paste the whole snippet, braces included.");
    }
    return PREVIEW;
  }

  async importServers(request: ImportRequest): Promise<string[]> {
    if (changesMeanwhile(true)) throw CHANGED;
    (window as unknown as { imported: ImportRequest }).imported = request;
    const added = request.chosen.map((name) => bare(name, "npx", ["-y", `server-${name}`]));
    this.#set([...this.view.servers.filter((one) => !request.chosen.includes(one.id)), ...added]);
    return request.chosen;
  }

  async exportServers(ids: string[]): Promise<string> {
    return JSON.stringify({ mcpServers: Object.fromEntries(ids.map((id) => [id, { command: "npx" }])) }, null, 2);
  }

  async saveExport(): Promise<string | null> {
    return "/home/lena/Documents/servers.json";
  }

  async setToolPermission(name: string, permission: RuleEffect | null): Promise<void> {
    this.#tool(name, { permission });
  }

  async setServerPermission(id: string, permission: RuleEffect | null): Promise<void> {
    this.#change(id, { permission });
  }

  async acceptTool(name: string, digest: string): Promise<void> {
    const known = this.view.servers.flatMap(({ tools }) => tools).find(({ spec }) => spec.name === name)?.changed;
    if (changesMeanwhile() && known) {
      this.#tool(name, { changed: { ...known, after: { name, description: "Now it sells." }, digest: "t9" } });
    }
    if (known && (changesMeanwhile(true) || known.digest !== digest)) throw CHANGED;
    this.#tool(name, { changed: null, enabled: true });
  }

  async doctor(id: string, onCheck: (check: DoctorCheck) => void): Promise<DoctorReport> {
    const down = this.#find(id).state.type === "failed";
    const steps: DoctorStep[] = ["path", "executable", "version", "spawn", "handshake", "list", "call"];
    const checks: DoctorCheck[] = [];
    for (const [index, step] of steps.entries()) {
      await new Promise((resolve) => setTimeout(resolve, 80));
      const outcome = !down || index < 3 ? "passed" : index === 3 ? "failed" : "skipped";
      const hint = outcome === "failed" ? "Check the network: `npx` could not fetch the package." : null;
      const check: DoctorCheck = { step, outcome, took_ms: 12 * (index + 1), says: SAYS[step] ?? "", hint };
      checks.push(check);
      onCheck(check);
    }
    return { server: id, checks };
  }
}

/** Set by a test: what is on the screen changes just before it is said yes to; once. */
function changesMeanwhile(forget = false): boolean {
  const asked = window as unknown as { changesMeanwhile?: boolean };
  const wanted = asked.changesMeanwhile === true;
  if (forget) asked.changesMeanwhile = false;
  return wanted;
}

const SAYS: Partial<Record<DoctorStep, string>> = {
  path: "14 folders, from the login shell",
  executable: "/home/lena/.nvm/versions/node/v22.1.0/bin/npx",
  version: "10.7.0",
  spawn: "the process",
  handshake: "protocol 2025-11-25",
  list: "5 tools",
  call: "echo answered",
};

function transportOf(draft: ServerDraft, known: ServerView | undefined): TransportView {
  const named = (list: { name: string; value: { type: string; text?: string } }[]): NamedValue[] =>
    list.map(({ name, value }) => ({
      name,
      value: value.type === "plain" ? (value.text ?? "") : "••••••",
      secret: value.type !== "plain",
    }));
  if (draft.transport.type === "http") {
    const before = known?.transport.type === "http" ? known.transport.url : "";
    return { type: "http", url: draft.transport.url ?? before, headers: named(draft.transport.headers) };
  }
  const before = known?.transport.type === "stdio" ? known.transport.args : [];
  const args = draft.transport.args.map((one) => (one.type === "plain" ? one.text : (before[one.position] ?? "")));
  return { ...draft.transport, args, env: named(draft.transport.env) };
}

function failed(id: string): ServerState {
  return {
    type: "failed",
    problem: problem(
      "server_command_not_found",
      `start MCP server \`${id}\`: there is no command \`wrong\``,
      "Check the spelling, or install the program.",
    ),
  };
}

const CHANGED: Problem = problem("changed_since_shown", "it is not what was shown any more", "Look at it again.");

export function problem(code: string, message: string, hint: string | null = null): Problem {
  return { code, message, hint, detail: null };
}
