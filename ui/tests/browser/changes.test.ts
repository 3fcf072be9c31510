// A yes counts for what was on the screen; long answers are shown when they are asked for.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventually, id, soon, type Stand, stand } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterEach(() => expect(place.complaints()).toEqual([]));
afterAll(() => place.close());

/** What is on the screen changes just before the next yes. */
const changeMeanwhile = (page: Page) =>
  page.evaluate(() => ((window as unknown as { changesMeanwhile: boolean }).changesMeanwhile = true));

it("a server that changed meanwhile is shown anew and asked about again", async () => {
  const page = await place.open("scene=servers", { hash: "#/settings/servers/id/git" });
  await page.locator(id("approval")).waitFor();
  await changeMeanwhile(page);
  await page.locator(id("approve")).click();
  await page.locator(id("changed-meanwhile")).waitFor();
  await eventually(
    () => page.locator(id("approval")).innerText(),
    (seen) => expect(seen).toContain("--everything"),
  );
  await soon(() => page.locator('section[data-server="git"]').getAttribute("data-state")).toBe("needs_approval");
  await page.locator(id("approve")).click();
  await page.locator('section[data-server="git"][data-state="ready"]').waitFor();
  await soon(() => page.locator(id("changed-meanwhile")).count()).toBe(0);
});

it("so is a tool", async () => {
  const page = await place.open("scene=servers", { hash: "#/settings/servers/id/tickets/tools" });
  const tool = page.locator('[data-tool="tickets__book"]');
  await tool.waitFor();
  await changeMeanwhile(page);
  await tool.getByRole("button", { name: /accept/i }).click();
  await tool.locator(id("changed-meanwhile")).waitFor();
  await soon(() => tool.innerText()).toContain("Now it sells.");
  await tool.getByRole("button", { name: /accept/i }).click();
  await eventually(
    () => tool.locator(id("tool-changed")).count(),
    (seen) => expect(seen).toBe(0),
  );
});

it("and an import", async () => {
  const page = await place.open("scene=servers", { hash: "#/settings/servers/import" });
  await page.locator(id("import-text")).fill("{}");
  await page.locator(id("import-look")).click();
  await page.locator(id("import-preview")).waitFor();
  await changeMeanwhile(page);
  await page.locator(id("import-add")).click();
  await page.locator(id("changed-meanwhile")).waitFor();
  await page.locator(id("import-add")).click();
  await page.locator(id("servers-page")).waitFor();
  await eventually(
    () => page.locator(id("import-preview")).count(),
    (seen) => expect(seen).toBe(0),
  );
});

it("a message that is too long for the trace is read whole", async () => {
  const page = await place.open("scene=tools");
  await page.waitForSelector("text=The other note could not be opened");
  await page.keyboard.press("Control+j");
  const rows = page.locator(`${id("trace-row")}[data-kind="call"]`);
  await rows.nth(2).locator("button").first().click();
  await page.locator(id("tab-messages")).click();
  const long = page.locator(id("long-message"));
  await long.getByRole("button", { name: "Show all" }).click();
  await eventually(
    () => long.locator("pre").innerText(),
    (seen) => expect(seen.length).toBeGreaterThan(90_000),
  );
  await page.locator(id("tab-result")).click();
  await long.getByRole("button", { name: "Show all" }).waitFor();
});
