// Every scene, in both themes and at four sizes: nothing complains, nothing is too wide, axe finds nothing.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { SCENE_NAMES } from "../../src/host/fake/scenes";
import { barriers, eventually, soon, type Stand, stand, tooWide } from "./page";

let place: Stand;

beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

const SIZES = [
  [1440, 900],
  [1000, 700],
  [900, 700],
  [640, 480],
  [380, 700],
] as const;

async function look(query: string, ready: string, hash = ""): Promise<void> {
  const page = await place.open(query, { width: 1440, height: 900, hash });
  await page.waitForSelector(ready);
  await inAllSizes(page);
}

async function inAllSizes(page: Page): Promise<void> {
  await soon(() => barriers(page)).toEqual([]);
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    // Parts that follow the room they have do so in the frame after.
    await eventually(
      () => tooWide(page),
      (seen) => expect(seen).toEqual([]),
    );
  }
  // Without motion, or colours would be read in the middle of a change.
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  await soon(() => barriers(page)).toEqual([]);
}

/** Scenes of the same kind are looked at in another language each. */
const LANGS = ["en", "fr", "zh-CN"];

it.each(SCENE_NAMES.map((scene, index) => [scene, LANGS[index % 3] ?? "en"]))("scene %s, %s", (scene, lang) => {
  const empty = ["first", "no-vault", "history", "servers", "models", "providers"].includes(scene);
  const ready = scene === "broken" ? '[data-testid="error"]' : empty ? ".empty h1" : '[data-testid="message-user"]';
  return look(`scene=${scene}&lang=${lang}&trace=1&speed=0.3`, ready);
});

it.each(["general", "models", "providers", "servers", "api", "vaults", "about"])("settings, %s", (section) =>
  look("scene=history", '[data-testid="settings"]', `#/settings/${section}`),
);

const PLACES: [string, string][] = [
  ["", '[data-server="files"]'],
  ["/new", '[data-testid="server-form"]'],
  ["/import", '[data-testid="import-text"]'],
  ["/id/tickets", '[role="tabpanel"]'],
  ["/id/tickets/edit", '[data-testid="server-form"]'],
  ["/id/tickets/tools", '[data-testid="tool-changed"]'],
  ["/id/tickets/log", '[data-testid="server-log"] > div'],
  ["/id/tickets/messages/7", '[data-number="5"] pre'],
  ["/id/files/doctor", '[data-testid="doctor-run"]'],
  ["/id/git", '[data-testid="approval"]'],
  ["/id/github", '[data-testid="sign-in"]'],
  ["/id/nobody", ".back"],
];
it.each(LANGS)("how a model answers, beside a conversation, %s", async (lang) => {
  const page = await place.open(`scene=answer&lang=${lang}`, { width: 1440, height: 900 });
  await page.locator('[data-testid="answers-button"]').click();
  await page.waitForSelector('[data-testid="answers-sheet"] [data-setting="temperature"]');
  await inAllSizes(page);
});

const MODELS: [string, string][] = [
  ["", '[data-testid="hardware"] dl'],
  ["/get", "[data-curated]"],
  ["/id/qwen3-4b", '[data-testid="memory-need"]'],
  ["/id/qwen3-4b/generation", '[data-testid="answers"] [data-setting="temperature"]'],
  ["/id/qwen3-4b/tools", '[data-testid="answers"] [data-setting="tools"]'],
  ["/id/qwen3-4b/advanced", '[data-testid="answers"] [data-setting="draft"]'],
  ["/id/coder", '[data-testid="memory-need"]'],
  ["/id/broken", '[data-testid="error"]'],
  ["/id/nobody", ".back"],
];
const PROVIDERS: [string, string][] = [
  ["", '[data-provider="router"]'],
  ["/new", '[data-testid="provider-form"]'],
  ["/id/vertex", '[data-testid="model-test"]'],
  ["/id/router", '[data-testid="login-place"]'],
  ["/id/adc", '[data-testid="sign-in-panel"]'],
  ["/id/adc/edit", '[data-testid="provider-form"]'],
  ["/id/nobody", ".back"],
];
it.each(PROVIDERS.map(([place, ready], index) => [place, ready, LANGS[index % 3] ?? "en"]))(
  "providers%s",
  (place, ready, lang) => look(`scene=providers&lang=${lang}`, ready, `#/settings/providers${place}`),
);
it("a remote model", () =>
  look("scene=providers&lang=fr", '[data-testid="remote-form"]', "#/settings/models/id/gemini-flash"));

it.each(MODELS.map(([place, ready], index) => [place, ready, LANGS[index % 3] ?? "en"]))(
  "models%s",
  (place, ready, lang) => look(`scene=models&lang=${lang}`, ready, `#/settings/models${place}`),
);

it.each(PLACES.map(([place, ready], index) => [place, ready, LANGS[index % 3] ?? "en"]))(
  "servers%s",
  (place, ready, lang) => look(`scene=servers&lang=${lang}`, ready, `#/settings/servers${place}`),
);
