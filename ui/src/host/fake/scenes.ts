// The scenes that can be asked for by `?scene=…`: what is there when the window opens.
import type { AppView, Problem } from "../../bindings/app";
import type { Script } from "./script";
import { chosenTools } from "./choosing";
import * as questions from "./questions";
import * as scripts from "./scripts";
import { everyDownload, everyModel } from "./models";
import { everyProvider, everyRemote } from "./providers";
import { everyState } from "./servers";
import { firstView } from "./view";

export interface ScriptedTurn {
  readonly text: string;
  readonly script: Script;
}

export interface Scene {
  readonly view?: Partial<AppView>;
  readonly history: readonly { readonly title: string; readonly turns: readonly ScriptedTurn[] }[];
  readonly current?: {
    readonly title: string;
    readonly turns: readonly ScriptedTurn[];
    /** Plays when the window is open. */
    readonly live?: ScriptedTurn;
  };
  readonly broken?: Problem;
}

const hat: ScriptedTurn = { text: "Where did Thomas lose his hat in Norway?", script: scripts.answer };
const both: ScriptedTurn = { text: "Compare both of my biscuit recipes", script: scripts.many };
const yunnan: ScriptedTurn = { text: "昆明住的小旅馆叫什么名字？", script: scripts.chinese };
const list: ScriptedTurn = {
  text: "Create a note Lists/Shopping.md with oats, lemons and candles",
  script: scripts.permission,
};
const house: ScriptedTurn = { text: "Tell me everything about the house", script: scripts.long };

const history: Scene["history"] = [
  { title: "Norway by rail", turns: [hat] },
  { title: "昆明的旅馆", turns: [yunnan] },
  { title: "Combien de kilomètres ai-je courus en 2020, et combien l’année d’après ?", turns: [hat] },
  { title: "Shopping list", turns: [list] },
];

function now(title: string, turns: readonly ScriptedTurn[], live?: ScriptedTurn): Scene {
  return { history, current: { title, turns, ...(live ? { live } : {}) } };
}

const remoteView: Partial<AppView> = {
  models: [...everyModel(), ...everyRemote()],
  model: "gemini-flash",
  providers: everyProvider(),
};

const SCENES: Readonly<Record<string, Scene>> = {
  first: { view: firstView(), history: [] },
  "no-vault": { view: { ...firstView(), vaults: [] }, history: [] },
  history: { history },
  answer: now("Norway by rail", [hat]),
  tools: now("Two recipes", [hat, both]),
  long: now("Everything about the house", [hat, house]),
  older: now(
    "A year of questions",
    Array.from({ length: 45 }, (_, index) => ({ ...hat, text: `Question number ${index + 1}` })),
  ),
  cjk: now("昆明的旅馆", [yunnan, yunnan]),
  streaming: now("Everything about the house", [hat], { ...house, script: scripts.streaming }),
  live: now("Norway by rail", [], hat),
  running: now("A slow tool", [hat], { text: "Run the slow tool", script: scripts.running }),
  permission: now("Shopping list", [hat], list),
  loading: now("Norway by rail", [], { text: hat.text, script: scripts.loading }),
  reading: now("Norway by rail", [], { text: hat.text, script: scripts.reading }),
  failed: now("A crash", [hat], { text: "What does error E7 mean?", script: scripts.failed }),
  "bad-file": now("A broken file", [{ text: "What does error E7 mean?", script: scripts.badFile }]),
  limit: now("Too many steps", [{ text: "Search until you find it", script: scripts.limit }]),
  withheld: { ...now("Withheld", [{ text: "Read the list to me", script: scripts.withheld }]), view: remoteView },
  cut: now("Cut short", [{ text: "Read the list to me", script: scripts.cut }]),
  servers: { view: { servers: everyState }, history },
  models: { view: { models: everyModel(), model: "llama-3.2-3b", downloads: [...everyDownload] }, history },
  providers: {
    view: remoteView,
    history,
  },
  remote: { ...now("A remote model", [{ ...hat, script: scripts.remoteAnswer }]), view: remoteView },
  quota: { ...now("No quota", [hat], { ...hat, script: scripts.waitsForQuota }), view: remoteView },
  "broke-off": { ...now("Broken off", [{ ...hat, script: scripts.brokeOff }]), view: remoteView },
  "not-enabled": { ...now("Not switched on", [{ ...hat, script: scripts.notEnabled }]), view: remoteView },
  form: now("A ticket to Bergen", [], { text: "Book a ticket", script: questions.asks(questions.form) }),
  url: now("Sign in", [], { text: "Book a ticket", script: questions.asks(questions.address) }),
  sampling: now("A summary", [], { text: "Summarise my trip", script: questions.asks(questions.sampling) }),
  asked: now("A ticket to Bergen", [{ text: "Book a ticket", script: questions.asks(questions.form) }]),
  exposure: now("Everything that decides", [{ text: "And the other one?", script: chosenTools }]),
  broken: {
    history: [],
    broken: {
      code: "store",
      message: "open the conversations: the file is not a database",
      hint: "Move conversations.db away, then start again.",
      detail: "/home/lena/.local/share/lectern/conversations.db",
    },
  },
};

export function sceneOf(name: string): Scene {
  return SCENES[name] ?? { view: firstView(), history: [] };
}

export const SCENE_NAMES = Object.keys(SCENES);
