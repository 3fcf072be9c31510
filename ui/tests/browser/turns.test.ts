// What a person does in a conversation, by mouse and by keys.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventually, id, soon, type Stand, stand, texts } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

async function ask(page: Page, text: string): Promise<void> {
  await page.locator(id("composer")).fill(text);
  await page.keyboard.press("Enter");
}

const done = (page: Page, count = 1) =>
  eventually(
    () => page.locator(`${id("message-assistant")}[data-running="false"]`).count(),
    (seen) => expect(seen).toBe(count),
  );
const cards = (page: Page) =>
  page
    .locator(id("tool-card"))
    .evaluateAll((all) => all.map((one) => [one.getAttribute("data-tool"), one.getAttribute("data-state")]));

it("a wait for a provider counts down, and can be stopped", async () => {
  const page = await place.open("scene=quota");
  const waiting = page.locator(id("retrying"));
  const seconds = async () => Number(/in (\d+) s/.exec(await waiting.innerText())?.[1]);
  await waiting.waitFor();
  await soon(() => waiting.innerText()).toContain("The model service asks to wait");
  await soon(() => waiting.innerText()).toContain("attempt 3");
  const before = await seconds();
  expect(before).toBeLessThanOrEqual(42);
  await eventually(seconds, (now) => expect(now).toBeLessThan(before));
  await page.getByRole("button", { name: "Stop waiting" }).click();
  await eventually(
    () => page.locator(id("message-assistant")).last().innerText(),
    (seen) => expect(seen).toContain("Stopped by you"),
  );
});

it("an answer that was cut or withheld says so, with a way out", async () => {
  const cut = await place.open("scene=cut");
  await done(cut);
  const answer = cut.locator(id("message-assistant"));
  await soon(() => answer.innerText()).toContain("Cut at the limit of length");
  await cut.getByRole("button", { name: "Continue", exact: true }).click();
  await soon(() => texts(cut, id("message-user")).then((all) => all.at(-1))).toBe("Continue.");

  const withheld = await place.open("scene=withheld");
  await done(withheld);
  await soon(() => withheld.locator(id("message-assistant")).innerText()).toContain("The provider held back the rest.");
  await withheld.getByRole("button", { name: "Choose another model" }).click();
  await soon(async () => withheld.url()).toContain("settings");
});

it("an answer that broke off stays, is marked, and is tried again only by the user", async () => {
  const page = await place.open("scene=broke-off");
  const answer = page.locator(id("message-assistant"));
  await page.locator(id("error")).waitFor();
  const seen = await answer.innerText();
  for (const part of ["in front of the opera house, where it", "This answer is incomplete.", "The answer broke off"]) {
    expect(seen).toContain(part);
  }
  await soon(() => answer.count()).toBe(1);
  await page.getByRole("button", { name: "Try again" }).click();
  await eventually(
    () => answer.count(),
    (count) => expect(count).toBe(2),
  );
});

it("what has to be mended elsewhere has a link there, and the way to the provider", async () => {
  const page = await place.open("scene=not-enabled");
  const address =
    "https://console.developers.google.com/apis/api/aiplatform.googleapis.com/overview?project=notes-of-lena-481516";
  await page.getByRole("link", { name: address }).click();
  const opened = () => page.evaluate(() => (window as unknown as { openedLinks?: string[] }).openedLinks);
  await eventually(opened, (seen) => expect(seen).toEqual([address]));
  await page.getByRole("button", { name: "Settings of the provider" }).click();
  await page.locator('[data-provider="vertex"]').waitFor();
});

it("an answer says what it took, in the provider's own figures, and what that costs", async () => {
  const page = await place.open("scene=remote&trace=1");
  const usage = page.locator(`${id("message-assistant")} ${id("turn-usage")}`);
  await usage.waitFor();
  await soon(() => usage.getAttribute("title")).toBe(
    "Tokens of this answer: 3,660 tokens read, 2,048 of them known already, 192 tokens written, " +
      "128 of them thoughts, about €0.0011",
  );
  await soon(() => page.locator(id("retry-row")).innerText()).toContain("Asked again after 0.6 s");
  await page.locator('[data-kind="step"] button').first().click();
  const facts = await page.locator("[role=tabpanel] dl").innerText();
  expect(facts).toMatch(/Tokens of thinking\s+64/);
  expect(facts).toMatch(/Tokens that were still known\s+1,024 \(56/);
});

it("a first question shows its calls and its answer with the note", async () => {
  const page = await place.open("scene=first&speed=0.3");
  await page.getByRole("button", { name: "Where did Thomas lose his hat in Norway?" }).click();
  await eventually(
    () => texts(page, id("message-user")),
    (seen) => expect(seen).toEqual(["Where did Thomas lose his hat in Norway?"]),
  );
  await done(page);
  await soon(() => cards(page)).toEqual([
    ["notes__search_notes", "done"],
    ["notes__read_note", "done"],
  ]);
  expect((await texts(page, id("message-assistant")))[0]).toContain("rolled down the marble into the fjord");
  expect(page.url()).toContain("#/c/");
  await soon(() => page.locator(id("conversation-list")).getByRole("button").first().innerText()).toContain("Thomas");
});

it("Enter sends, Shift+Enter does not, and an input method keeps its Enter", async () => {
  const page = await place.open("scene=first&speed=0.1");
  const composer = page.locator(id("composer"));
  await composer.click();
  await page.keyboard.type("one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  await soon(() => composer.inputValue()).toBe("one\ntwo");
  for (const how of [{ isComposing: true }, { keyCode: 229 }]) {
    await composer.evaluate(
      (field, how) =>
        field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...how })),
      how,
    );
  }
  await soon(() => texts(page, id("message-user"))).toEqual([]);
  await page.keyboard.press("Enter");
  await eventually(
    () => texts(page, id("message-user")),
    (seen) => expect(seen).toEqual(["one\ntwo"]),
  );
  await soon(() => composer.inputValue()).toBe("");
});

it("a tool that writes waits for the user, and can be answered by keys alone", async () => {
  const page = await place.open("scene=first&speed=0.2");
  await ask(page, "create a shopping note");
  const allow = page.locator(id("permission-allow-once"));
  await allow.waitFor();
  await soon(() => cards(page)).toEqual([["notes__create_note", "waiting"]]);
  await soon(() => page.locator(id("tool-card")).innerText()).toContain("- candles");
  await page.locator(id("composer")).focus();
  for (let presses = 0; presses < 12 && !(await allow.evaluate((one) => one === document.activeElement)); presses++) {
    await page.keyboard.press("Shift+Tab");
    if (await page.locator(id("permission-deny")).evaluate((one) => one === document.activeElement)) break;
  }
  await allow.focus();
  await page.keyboard.press("Enter");
  await done(page);
  await soon(() => cards(page)).toEqual([["notes__create_note", "done"]]);
});

it("a denied tool is shown as denied, and the turn goes on", async () => {
  const page = await place.open("scene=first&speed=0.2");
  await ask(page, "create a shopping note");
  await page.locator(id("permission-deny")).click();
  await done(page);
  await soon(() => cards(page)).toEqual([["notes__create_note", "denied"]]);
  expect((await texts(page, id("message-assistant")))[0]).toContain("I did not write the note.");
});

it("all four answers are offered", async () => {
  const page = await place.open("scene=permission&speed=0.2");
  await page.locator(id("permission-allow-once")).waitFor();
  for (const name of ["allow-once", "allow-conversation", "allow-always"]) {
    await soon(() => page.locator(id(`permission-${name}`)).count()).toBe(1);
  }
  await soon(() => page.locator(id("permission-deny")).count()).toBe(1);
});

it("Esc stops a turn, and what was written stays, marked as incomplete", async () => {
  const page = await place.open("scene=streaming&speed=0.2");
  await eventually(
    () => texts(page, id("message-assistant")),
    (seen) => expect(seen.at(-1)).toContain("Flow temperature"),
  );
  await page.locator(id("composer")).focus();
  await page.keyboard.press("Escape");
  await done(page, 2);
  const answer = (await texts(page, id("message-assistant"))).at(-1) ?? "";
  expect(answer).toContain("Flow temperature");
  expect(answer).toContain("incomplete");
  expect(answer).toContain("Stopped by you");
});

it("the stop button cancels a running tool", async () => {
  const page = await place.open("scene=running&speed=0.2");
  await eventually(
    () => cards(page),
    (seen) => expect(seen).toContainEqual(["everything__longRunningOperation", "running"]),
  );
  await page.locator(id("stop")).click();
  await eventually(
    () => cards(page),
    (seen) => expect(seen.slice(-2).map(([, state]) => state)).toEqual(["cancelled", "cancelled"]),
  );
  await page.locator(id("send")).waitFor();
});

it("a message written while a turn runs is shown above the field and sent after", async () => {
  const page = await place.open("scene=first&speed=0.5");
  await ask(page, "the slow one");
  await page.locator(id("stop")).waitFor();
  await ask(page, "and then this");
  await eventually(
    () => page.locator(".queued.meta").innerText(),
    (seen) => expect(seen).toContain("and then this"),
  );
  await done(page, 2);
  await soon(() => texts(page, id("message-user"))).toEqual(["the slow one", "and then this"]);
  await soon(() => page.locator(".queued.meta").count()).toBe(0);
});

it("a tool card never jumps", async () => {
  const page = await place.open("scene=first&speed=0.6");
  await page.evaluate(() => {
    const seen: Record<string, Set<string>> = {};
    Object.assign(window, { seen });
    const look = () => {
      const top = document.querySelector("[role=log] > div")?.getBoundingClientRect().top ?? 0;
      for (const card of document.querySelectorAll<HTMLElement>("[data-testid=tool-card]")) {
        const box = card.getBoundingClientRect();
        const place = `${Math.round(box.top - top)} ${Math.round(box.height)}`;
        (seen[card.dataset["call"] ?? ""] ??= new Set()).add(place);
      }
      requestAnimationFrame(look);
    };
    look();
  });
  await ask(page, "the slow one");
  await done(page);
  const seen = await page.evaluate(() =>
    Object.values((window as unknown as { seen: Record<string, Set<string>> }).seen).map((places) => [...places]),
  );
  expect(seen).toHaveLength(2);
  expect(seen.map((places) => places.length)).toEqual([1, 1]);
});

it("the view stays where the user is while an answer comes in", async () => {
  const page = await place.open("scene=first&speed=0.5", { height: 500 });
  await ask(page, "everything about the house");
  const log = page.locator("[role=log]");
  await eventually(
    () => log.evaluate((one) => one.scrollTop),
    (seen) => expect(seen).toBeGreaterThan(200),
  );
  await log.evaluate((one) => one.scrollTo({ top: 0 }));
  await page.waitForTimeout(200);
  await done(page);
  await soon(() => log.evaluate((one) => one.scrollTop)).toBe(0);
  await page.getByRole("button", { name: "To the end" }).click();
  await eventually(
    () => log.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight),
    (seen) => expect(seen).toBeLessThan(4),
  );
});

it("a failed turn says why, and can be tried again", async () => {
  const page = await place.open("scene=first&speed=0.1");
  await ask(page, "crash please");
  const error = page.locator(id("error"));
  await error.waitFor();
  await soon(() => error.innerText()).toContain("The model stopped unexpectedly");
  await soon(() => error.innerText()).toContain("signal 6");
  expect((await texts(page, id("message-assistant")))[0]).toContain("I'll look into the");
  await error.getByRole("button", { name: "Try again" }).click();
  await eventually(
    () => texts(page, id("message-user")),
    (seen) => expect(seen).toEqual(["crash please", "crash please"]),
  );
});

it("a message that can't be sent is kept", async () => {
  const page = await place.open("scene=first");
  await ask(page, "unsendable");
  await page.locator(id("error")).waitFor();
  await soon(() => page.locator(id("error")).innerText()).toContain("disk is full");
  await page.getByRole("button", { name: "Edit" }).click();
  await soon(() => page.locator(id("composer")).inputValue()).toBe("unsendable");
});

it("the step limit offers to go on", async () => {
  const page = await place.open("scene=limit&speed=0.1");
  await page.getByRole("button", { name: "Continue" }).click();
  await eventually(
    () => texts(page, id("message-user")),
    (seen) => expect(seen.at(-1)).toBe("Continue."),
  );
});

it("nothing of an answer runs, and links open outside", async () => {
  const page = await place.open("scene=long");
  await page.waitForSelector("text=What your notes say");
  await soon(() => page.locator(`${id("message-assistant")} script, ${id("message-assistant")} img`).count()).toBe(0);
  const before = page.url();
  await page.getByRole("link", { name: "manual" }).click();
  expect(page.url()).toBe(before);
  const opened = await page.evaluate(() => (window as unknown as { openedLinks: string[] }).openedLinks);
  expect(opened).toEqual(["https://example.org/manual"]);
});

it("a citation opens the note at the passage", async () => {
  const page = await place.open("scene=answer");
  await page.locator("[data-note]").first().click();
  const sheet = page.locator(id("note-sheet"));
  await sheet.locator("mark").first().waitFor();
  expect((await sheet.locator("mark").allInnerTexts()).join("")).toContain("Thomas lost his hat there");
  const inView = await sheet
    .locator("mark")
    .first()
    .evaluate((one) => {
      const box = one.getBoundingClientRect();
      return box.top > 0 && box.bottom < innerHeight;
    });
  expect(inView).toBe(true);
  await page.keyboard.press("Escape");
  await eventually(
    () => sheet.count(),
    (seen) => expect(seen).toBe(0),
  );
});
