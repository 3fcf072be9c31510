// Opens the built page in a real Chromium, as the app would: same policy, frozen prototypes.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { expect } from "vitest";
import { serve } from "./serve";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export interface Stand {
  open(query: string, options?: { width?: number; height?: number; dark?: boolean; hash?: string }): Promise<Page>;
  /** Everything that the pages complained of since the last call. */
  complaints(): string[];
  close(): Promise<void>;
}

export async function stand(): Promise<Stand> {
  const server = await serve(join(import.meta.dirname, "../../dist-test"));
  const executablePath = process.env["CHROMIUM"] ?? CHROMIUM.find((path) => existsSync(path));
  const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];
  const browser: Browser = await chromium.launch({ ...(executablePath ? { executablePath } : {}), args });
  // One context for all: each new one would cost a browser window of its own.
  const context = await browser.newContext();
  await context.addInitScript("Object.freeze(Object.prototype)");
  let complaints: string[] = [];
  return {
    async open(query, { width = 1280, height = 800, dark = false, hash = "" } = {}) {
      for (const old of context.pages()) await old.close();
      const page = await context.newPage();
      // Only against hanging for ever: a machine that is busy with other things may be slow.
      page.setDefaultTimeout(Number(process.env["PAGE_PATIENCE"] ?? 120_000));
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
      await page.goto(`${server.url}/icon.svg`);
      await page.evaluate(() => localStorage.clear());
      page.on("pageerror", (error) => complaints.push(`${query}: ${error.message}`));
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) complaints.push(`${query}: ${message.text()}`);
      });
      await page.goto(`${server.url}/?${query}${hash}`);
      return page;
    },
    complaints() {
      const all = complaints;
      complaints = [];
      return all;
    },
    async close() {
      await browser.close();
      await server.close();
    },
  };
}

/** Only a broken page is waited for so long. */
const PATIENCE = Number(process.env["SOON"] ?? 90_000);

export const id = (name: string) => `[data-testid="${name}"]`;

/** Waits until a condition on the page holds, and tells what was seen when it does not. */
export async function eventually<T>(look: () => Promise<T>, check: (seen: T) => void): Promise<void> {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const seen = await look();
    try {
      check(seen);
      return;
    } catch (failed) {
      if (Date.now() > end) throw failed;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What `look` sees, asked again until it is what is expected: a page changes after what it was told, not with it. */
export function soon<T>(look: () => Promise<T>) {
  return expect.poll(look, { timeout: PATIENCE, interval: 50 });
}

export async function texts(page: Page, selector: string): Promise<string[]> {
  return (await page.locator(selector).allInnerTexts()).map((text) => text.trim());
}

/** Elements that are wider than what holds them. */
export function tooWide(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const all = [
      document.documentElement,
      ...document.querySelectorAll("main, header, header button:not(.one-line), aside, nav, [role=log], [role=region]"),
    ];
    return all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `${one.tagName}.${one.className}`);
  });
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** What axe finds on the page as it is now. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await (
      window as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }
    ).axe.run();
    return violations.flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.html}\n${node.failureSummary ?? ""}`),
    );
  });
}
