// The page of the local API, and what it asks the user: all that a person does there.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { barriers, eventually, id, soon, type Stand, stand, texts, tooWide } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

const open = (mode = "", where = "", more = "") =>
  place.open(`scene=history&api=${mode}${more}`, { hash: `#/settings/api${where}` });
const says = (page: Page, selector: string, wanted: string | RegExp) =>
  eventually(
    async () => (await texts(page, selector)).join("\n"),
    (seen) => (typeof wanted === "string" ? expect(seen).toContain(wanted) : expect(seen).toMatch(wanted)),
  );
const state = (page: Page) => page.locator(id("api-page")).getAttribute("data-state");
const turn = (page: Page) => page.locator(id("api-switch")).click({ force: true });

/** In dark and light, at all sizes: nothing is too wide, axe finds nothing. */
async function looksRight(page: Page): Promise<void> {
  await soon(() => barriers(page)).toEqual([]);
  for (const width of [1440, 900, 640, 380]) {
    await page.setViewportSize({ width, height: 800 });
    await soon(() => tooWide(page)).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  await soon(() => barriers(page)).toEqual([]);
}

it("it is off at first, goes on with its address, and off again", async () => {
  const page = await open();
  await soon(() => state(page)).toBe("off");
  await says(page, id("api-no-keys"), "Nobody is served");
  await looksRight(page);
  await turn(page);
  await soon(() => state(page)).toBe("running");
  await says(page, id("api-status"), "http://127.0.0.1:11480");
  await says(page, id("api-under-way"), "0 requests under way");
  await turn(page);
  await soon(() => state(page)).toBe("off");
});

it("a key is made by keys alone, shown once, stands in the examples, and is gone with a word", async () => {
  const page = await open("running");
  await page.locator(id("api-add-key")).focus();
  await page.keyboard.press("Enter");
  await soon(() => page.evaluate(() => document.activeElement?.getAttribute("data-testid"))).toBe("key-name");
  await page.keyboard.type("notes script");
  await page.keyboard.press("Enter");
  await page.locator(id("api-made-key")).waitFor();
  const secret = (await texts(page, id("api-secret"))).join("");
  expect(secret).toMatch(/^sk-lectern-/);
  await says(page, id("api-example"), `Bearer ${secret}`);
  await says(page, id("api-example"), "http://127.0.0.1:11480/v1/chat/completions");
  await says(page, id("api-example-note"), "filled in");
  await page.locator(id("tab-python")).click();
  await says(page, id("api-example"), `api_key="${secret}"`);
  await page.locator(id("tab-bigagi")).click();
  await says(page, id("api-examples"), secret);
  await looksRight(page);
  await page.locator(id("key-copied")).click();
  // It is nowhere any more.
  await soon(() => page.evaluate(() => document.documentElement.outerHTML)).not.toContain(secret);
  await says(page, id("api-examples"), "YOUR-KEY");
  await says(page, '[data-key="notes script"]', "not used since Lectern was started");
});

it("keys say what they may do and where they are, long ones too, and can be revoked after a question", async () => {
  const page = await open("running");
  await says(page, '[data-key="Big-AGI"]', /Ask models · Run tools of your servers · every request gets your servers/);
  await says(page, '[data-key="Big-AGI"]', /used last/);
  await says(page, id("key-place"), "good until Lectern ends");
  await looksRight(page);
  await page.locator('[data-key="editor"]').locator(id("key-revoke")).click();
  // The answer that changes nothing has the focus.
  await soon(() => page.evaluate(() => document.activeElement?.textContent?.trim())).toBe("Cancel");
  await soon(() => barriers(page)).toEqual([]);
  await page.keyboard.press("Enter");
  await soon(() => page.locator(id("key-revoke-ask")).count()).toBe(0);
  await page.locator('[data-key="editor"]').locator(id("key-revoke")).click();
  await page.locator(id("key-revoke-yes")).click();
  await soon(() => page.locator('[data-key="editor"]').count()).toBe(0);
});

it("without a keyring it says how long a key is good, and a locked keyring is an error with a way out", async () => {
  const page = await open("session");
  await page.locator(id("api-add-key")).click();
  await page.locator(id("key-name")).fill("n".repeat(64));
  await page.locator(id("key-scope-tools")).uncheck();
  await soon(() => page.locator(id("key-server-tools")).isDisabled()).toBe(true);
  await page.locator(id("key-make")).click();
  await says(page, id("key-session"), "no keyring on this computer");
  await looksRight(page);
  const locked = await open("locked");
  await says(locked, id("error"), "Unlock the keyring");
  await soon(() => locked.locator(id("key-revoke")).count()).toBe(3);
  // Whether they are in there is not known.
  expect(await locked.locator(id("key-place")).count()).toBe(0);
  await looksRight(locked);
  const missing = await open("empty");
  await says(missing, id("key-place"), "opens nothing");
});

it("a name that is taken is refused where it was typed", async () => {
  const page = await open("running");
  await page.locator(id("api-add-key")).click();
  await page.locator(id("key-name")).fill("editor");
  await page.locator(id("key-make")).click();
  await says(page, `${id("api-new-key")} ${id("error")}`, "There is a key of this name already");
  await page.keyboard.press("Escape");
  await soon(() => page.locator(id("api-new-key")).count()).toBe(0);
  // One step back is enough: the page is still there.
  expect(await state(page)).toBe("running");
});

it("a port that is taken is said, and another is a click away", async () => {
  const page = await open("port");
  await turn(page);
  await soon(() => state(page)).toBe("failed");
  await says(page, id("error"), "Another program listens at this port");
  await looksRight(page);
  await page.locator(id("api-other-port")).click();
  await says(page, id("api-status"), "http://127.0.0.1:11481");
  await soon(() => page.locator(id("api-port")).inputValue()).toBe("11481");
  await page.locator(id("api-here")).click();
  await soon(() => state(page)).toBe("failed");
});

it("what other computers reach is agreed to first, and stays marked", async () => {
  const page = await open("running");
  await page.locator(id("api-port")).fill("70000");
  await says(page, id("api-address"), "from 1 to 65535");
  expect(await page.locator(id("api-apply")).isDisabled()).toBe(true);
  await page.locator(id("api-port")).fill("11500");
  await page.locator(id("api-bind")).fill("0.0.0.0");
  await page.locator(id("api-apply")).click();
  await says(page, id("api-beyond"), "nothing is encrypted");
  await says(page, id("api-status"), "11480");
  await looksRight(page);
  await page.locator(id("api-beyond-yes")).click();
  await says(page, id("api-status"), "http://127.0.0.1:11500");
  await says(page, id("api-beyond-now"), "Other computers");
  await page.locator(id("api-bind")).fill("desk.lan");
  await page.locator(id("api-apply")).click();
  await says(page, id("api-address"), "That is no address");
});

it("web pages and names are listed one by one, and what is refused is named beside its field", async () => {
  const page = await open("running");
  const origins = page.locator(id("api-origins"));
  const entries = (list: string) =>
    page.locator(`${id(list)} li`).evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset["name"]));
  await says(page, id("api-callers"), "All other pages are refused");
  await says(page, id("api-callers"), "starts the server anew");
  await origins.locator("input").fill("*");
  await page.keyboard.press("Enter");
  await says(page, `${id("api-origins")} ${id("error")}`, "“*” is not the origin of a web page");
  await says(page, `${id("api-origins")} ${id("error")}`, "http://localhost:3000");
  expect(await origins.locator("input").getAttribute("aria-invalid")).toBe("true");
  await looksRight(page);
  await page.setViewportSize({ width: 1280, height: 800 });
  await origins.locator("input").fill("https://app.example.org/chat");
  await page.keyboard.press("Enter");
  await soon(() => entries("api-origins")).toEqual(["https://app.example.org"]);
  await soon(() => page.locator(`${id("api-origins")} ${id("error")}`).count()).toBe(0);
  // The next one can be typed at once.
  await soon(() => origins.locator("input").evaluate((one) => one === document.activeElement)).toBe(true);
  await soon(() => state(page)).toBe("running");
  await page.locator(`${id("api-hosts")} input`).fill("desk.lan:80");
  await page.locator(`${id("api-hosts")} form button`).click();
  await says(page, `${id("api-hosts")} ${id("error")}`, "“desk.lan:80” is not a name of this computer");
  await page.locator(`${id("api-hosts")} input`).fill("desk.lan");
  await page.locator(`${id("api-hosts")} form button`).click();
  await soon(() => entries("api-hosts")).toEqual(["desk.lan"]);
  // One list leaves the other alone.
  expect(await entries("api-origins")).toEqual(["https://app.example.org"]);
  await page.getByRole("button", { name: "Remove https://app.example.org" }).click();
  await soon(() => entries("api-origins")).toEqual([]);
  expect(await entries("api-hosts")).toEqual(["desk.lan"]);
});

it("calls that wait are asked on every page, with the key, the tool and all of the arguments", async () => {
  const page = await place.open("scene=answer&api=waiting");
  await says(page, id("approvals"), "“Big-AGI” asks: may create_note of notes run with this?");
  await says(page, id("approvals"), "Lists/Shopping.md");
  await says(page, id("approvals"), "Without an answer it is denied");
  await says(page, id("approvals"), '{"path":');
  await looksRight(page);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.locator(id("approval-deny")).first().focus();
  await page.keyboard.press("Enter");
  await soon(() => page.locator(id("approval-waiting")).count()).toBe(1);
  await page.keyboard.press("Control+,");
  await page.locator(id("settings")).waitFor();
  await page.locator(id("approval-once")).click();
  await soon(() => page.locator(id("approvals")).count()).toBe(0);
  const told = await page.evaluate(() => (window as unknown as { approved: unknown }).approved);
  expect(told).toEqual([
    ["apr_1", false],
    ["apr_2", true],
  ]);
});

it("the numbers are charts with their figures beside them", async () => {
  const page = await open("running", "/numbers");
  await says(page, id("number-requests"), "1,284");
  await says(page, id("number-running"), "3 requests under way");
  await says(page, id("number-with-tools"), "296 of 1,187 (25%)");
  await says(page, id("number-reused"), "1,902,110 of 2,410,233 (79%)");
  await says(page, id("times-first"), /1,187 measured, 0.4 s on average/);
  await says(page, id("times-total"), /longer\s*1/);
  await soon(async () => (await texts(page, `${id("numbers-tools")} tbody tr`))[0]?.split(/\s+/).join(" ")).toBe(
    "notes · search 402 3 0",
  );
  await says(page, id("numbers-errors"), "context_length_exceeded");
  // The longest bar is whole, and none is wider than its room.
  const parts = await page
    .locator(`${id("times-first")} .chart`)
    .evaluateAll((all) => all.map((one) => (one as HTMLElement).style.width));
  expect(parts).toContain("100%");
  await looksRight(page);
});

it("without numbers it says why", async () => {
  const empty = await open("empty", "/numbers");
  await says(empty, id("numbers-none"), "Nothing was asked yet");
  const off = await open("", "/numbers");
  await says(off, id("numbers-off"), "does not run");
  await off.locator(id("numbers-off")).getByRole("button").click();
  await off.locator(id("api-switch")).waitFor({ state: "attached" });
});

it.each(["fr", "zh-CN"])("all of it fits in %s", async (lang) => {
  for (const [mode, where] of [
    ["port", ""],
    ["running", ""],
    ["running", "/numbers"],
    ["waiting", ""],
  ] as const) {
    const page = await open(mode, where, `&lang=${lang}`);
    await page.locator(id("api-page")).waitFor();
    if (mode === "port") {
      await turn(page);
      await page.locator(id("error")).waitFor();
    }
    await looksRight(page);
  }
});
