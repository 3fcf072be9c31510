// Questions of servers in the conversation.
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventually, id, soon, type Stand, stand, texts } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

const answer = `${id("message-assistant")} .prose`;

it("a form is filled, checked, and sent", async () => {
  const page = await place.open("scene=form&speed=0.2");
  const card = page.locator(id("question"));
  await card.waitFor();
  const text = await card.innerText();
  expect(text).toContain("everything asks you:");
  expect(text).toContain("⟦U+200B⟧");
  await soon(() => page.locator(id("tool-card")).getAttribute("data-state")).toBe("waiting");
  await page.locator(id("question-accept")).click();
  // The faults are said, and the first of them has the caret.
  await eventually(
    () => texts(page, ".fault"),
    (seen) => expect(seen).toEqual(["This is needed.", "This is needed."]),
  );
  await soon(() =>
    page.evaluate(() => document.activeElement?.closest("[data-field]")?.getAttribute("data-field")),
  ).toBe("name");
  await page.getByLabel(/^Name/).fill("Ada");
  await page.getByLabel(/^E-mail/).fill("ada");
  await page.getByLabel(/^Seats/).fill("9");
  await soon(() => texts(page, ".fault")).toEqual(["Write an e-mail address.", "At most 6."]);
  await page.getByLabel(/^E-mail/).fill("ada@example.org");
  await page.getByLabel(/^Seats/).fill("3");
  await page.getByLabel("A bicycle").check();
  await page.getByLabel(/^Class/).selectOption("1");
  await page.getByLabel("Send me news").check();
  await page.locator(id("question-accept")).click();
  await eventually(
    () => texts(page, answer),
    (seen) =>
      expect(seen.join()).toContain(
        'accepted: {"name":"Ada","email":"ada@example.org","seats":3,"class":"1","extras":["quiet","bike"],"news":true}',
      ),
  );
});

it("what the core refuses stays open with the reason", async () => {
  const page = await place.open("scene=form&speed=0.2");
  await page.getByLabel(/^Name/).fill("refused");
  await page.getByLabel(/^E-mail/).fill("ada@example.org");
  await page.keyboard.press("Enter");
  await page.getByText("this name is not accepted").waitFor();
  await soon(() => page.getByLabel(/^Name/).inputValue()).toBe("refused");
});

it.each([
  ["question-decline", "declined"],
  ["question-cancel", "cancelled"],
])("%s", async (button, told) => {
  const page = await place.open("scene=form&speed=0.2");
  await page.locator(id(button)).click();
  await eventually(
    () => texts(page, answer),
    (seen) => expect(seen.join()).toContain(told),
  );
  await page.locator(`${id("tool-card")} .line`).click();
  await soon(() => page.locator(id("question-past")).getAttribute("data-answer")).toBe(told);
});

it("an open question survives a look at the settings", async () => {
  const page = await place.open("scene=form&speed=0.2");
  await page.locator(id("question")).waitFor();
  await page.keyboard.press("Control+,");
  await page.locator(id("settings")).waitFor();
  await page.getByRole("button", { name: "Back" }).click();
  await page.locator(id("question")).waitFor();
});

it("an address is shown whole, warned of, and opened only after a yes", async () => {
  const page = await place.open("scene=url&speed=0.2");
  await page.locator(id("question-url")).waitFor();
  await soon(() => page.locator(`${id("question-url")} strong`).innerText()).toBe("login.xn--bhn-qla.example");
  await soon(() => page.locator('[data-warning="punycode"]').count()).toBe(1);
  const opened = () => page.evaluate(() => (window as unknown as { openedLinks?: string[] }).openedLinks ?? []);
  await soon(() => opened()).toEqual([]);
  await page.locator(id("question-accept")).click();
  await eventually(
    () => texts(page, answer),
    (seen) => expect(seen.join()).toContain("accepted"),
  );
  await soon(() => opened()).toEqual([
    "https://login.xn--bhn-qla.example/authorize?session=8f31c0d2&return=https%3A%2F%2Fbahn.example%2Fdone",
  ]);
});

it("an address that was declined is never opened", async () => {
  const page = await place.open("scene=url&speed=0.2");
  await page.locator(id("question-decline")).click();
  await eventually(
    () => texts(page, answer),
    (seen) => expect(seen.join()).toContain("declined"),
  );
  await soon(() => page.evaluate(() => (window as unknown as { openedLinks?: string[] }).openedLinks)).toBeUndefined();
});

it("sampling shows what is asked and who answers, and afterwards what was said", async () => {
  const page = await place.open("scene=sampling&speed=0.2");
  const text = await page.locator(id("question")).innerText();
  for (const part of [
    "everything wants to ask your model",
    "Lectern Starter will answer",
    "Summarise:",
    "200 tokens",
  ]) {
    expect(text).toContain(part);
  }
  await page.locator(id("question-accept")).click();
  const reply = page.locator('[data-question="sampling_reply"]');
  await reply.waitFor();
  const shown = await reply.innerText();
  for (const part of ["Lectern Starter", "A fortnight by rail.", "not been sent"]) expect(shown).toContain(part);
  await reply.locator(id("question-accept")).click();
  await eventually(
    () => texts(page, answer),
    (seen) => expect(seen.join()).toContain("accepted"),
  );
  await page.locator(`${id("tool-card")} .line`).click();
  await soon(() => page.locator(id("question-past")).first().innerText()).toContain("A fortnight by rail.");
});

it("a stopped turn closes its question", async () => {
  const page = await place.open("scene=form&speed=0.2");
  await page.locator(id("question")).waitFor();
  await page.locator(id("stop")).click();
  await eventually(
    () => page.locator(id("question")).count(),
    (seen) => expect(seen).toBe(0),
  );
  await soon(() => page.locator(id("tool-card")).getAttribute("data-state")).toBe("cancelled");
});
