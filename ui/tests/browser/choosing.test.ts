// What decided about a step: its tools, its settings, its room.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { id, soon, stand, type Stand } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

const row = (page: Page, at: number) => page.locator(`${id("trace-row")}[data-kind="step"]`).nth(at);

async function opened(at: number, tab: string): Promise<[Page, string]> {
  const page = await place.open("scene=exposure&trace=1", { width: 1500 });
  await row(page, at).locator("button.line").click();
  await row(page, at)
    .locator(id(`tab-${tab}`))
    .click();
  return [page, await row(page, at).locator("[role=tabpanel]").innerText()];
}

it("the trace says which tools were offered and why, and which were not", async () => {
  const [page, tools] = await opened(0, "tools");
  for (const words of ["By relevance", "A tool is needed", "14 tokens", "pinned", "fits the question", "3.5"]) {
    expect(tools).toContain(words);
  }
  expect(tools).toContain("41 tools were left out");
  await page.getByText("41 tools were left out").click();
  await soon(() => row(page, 0).locator("[role=tabpanel]").innerText()).toContain("and 39 more");
});

it("the trace says with which settings, as they were written", async () => {
  const [, settings] = await opened(0, "settings");
  for (const words of ["Temperature", "0.7", "Repeat penalty", "1.1", '"\\n\\nUser:"', "JSON Schema", "8,192"]) {
    expect(settings).toContain(words);
  }
  expect(settings).not.toContain("Min-p");
});

it("the trace says what was guessed ahead and what was cut to fit", async () => {
  const [, overview] = await opened(0, "overview");
  for (const words of [
    "13 of 20 were right (65%)",
    "5,012 of 7,168 tokens",
    "the tools",
    "4,100 of 61,200 characters",
  ]) {
    expect(overview).toContain(words);
  }
});

it("a repeated call, an empty answer and a summary are marked where they happened", async () => {
  const page = await place.open("scene=exposure&trace=1", { width: 1500 });
  const cards = page.locator(id("tool-card"));
  await cards.nth(1).waitFor();
  await soon(() => cards.nth(0).innerText()).not.toContain("asked before");
  await soon(() => cards.nth(1).innerText()).toContain("asked before: the earlier result was shown");
  await soon(() => row(page, 2).innerText()).toContain("without tools");
  await soon(() => row(page, 3).innerText()).toContain("again, without tools");
  const summary = page.locator(id("earlier-summary"));
  await summary.getByText("A summary stands for 12 earlier messages").click();
  // What the model wrote is text.
  await soon(() => summary.innerText()).toContain("<b>two</b>");
});
