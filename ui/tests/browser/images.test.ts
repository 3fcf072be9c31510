// Images in the composer and in the conversation.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { DropNews, SendRequest } from "../../src/bindings/app";
import { barriers, eventually, id, soon, type Stand, stand, texts, tooWide } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterEach(() => expect(place.complaints()).toEqual([]));
afterAll(() => place.close());

const sent = (page: Page) => page.evaluate(() => (window as unknown as { sent?: SendRequest[] }).sent ?? []);
const enclosed = (page: Page) => page.locator(`${id("chips")} [data-enclosed]`).count();
const toasts = (page: Page) => texts(page, id("error"));

/** As the clipboard gives it. */
const paste = (page: Page, name: string, type: string) =>
  page.locator(id("composer")).evaluate(
    (field, { name, type }) => {
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File([new Uint8Array([137, 80, 78, 71])], name, { type }));
      field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    },
    { name, type },
  );

it("images are attached, kept over a restart, taken out again, sent, and shown large", async () => {
  const page = await place.open("scene=history&sees=1");
  await page.locator(id("attach")).click();
  await eventually(
    () => enclosed(page),
    (count) => expect(count).toBe(1),
  );
  await soon(() => page.getByRole("img", { name: "cat.png" }).count()).toBe(1);
  await page.reload();
  await page.getByRole("img", { name: "cat.png" }).waitFor();
  await soon(() => barriers(page)).toEqual([]);
  await soon(() => tooWide(page)).toEqual([]);
  await paste(page, "image.png", "image/png");
  await page.getByRole("img", { name: "Image", exact: true }).waitFor();
  const pasted = await page
    .locator(`${id("chips")} [data-enclosed]`)
    .last()
    .getAttribute("data-enclosed");
  await page.getByRole("button", { name: "Leave out cat.png" }).click();
  await eventually(
    () => enclosed(page),
    (count) => expect(count).toBe(1),
  );
  // An image alone is a message.
  await page.locator(id("send")).click();
  await eventually(
    () => sent(page),
    (requests) => expect(requests).toEqual([{ conversation: null, text: "", enclosed: [pasted] }]),
  );
  await soon(() => enclosed(page)).toBe(0);
  await page
    .locator(`${id("took")} button`)
    .first()
    .click();
  const dialog = page.locator(`${id("picture")}[open]`);
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" }).catch(() => undefined);
  await soon(() => dialog.count()).toBe(0);
});

it("images are dropped; what is no image says so and keeps back no other", async () => {
  const page = await place.open("scene=history&sees=1");
  await page.locator(id("composer")).waitFor();
  const drop = (news: DropNews) =>
    page.evaluate((news) => (window as unknown as { fakeDrop(news: unknown): void }).fakeDrop(news), news);
  const images = ["dog.jpg", "torn.png"];
  await drop({ type: "over", models: [], images, keys: [], others: 0 });
  const target = page.locator(id("drop-target"));
  await soon(() => target.getAttribute("data-fits")).toBe("true");
  await soon(() => target.innerText()).toContain("dog.jpg, torn.png");
  await drop({ type: "dropped", models: [], images, keys: [], others: 0 });
  await page.getByRole("img", { name: "dog.jpg" }).waitFor();
  await eventually(
    () => toasts(page),
    (shown) => expect(shown.join()).toContain("torn.png"),
  );
  await paste(page, "notes.txt", "text/plain");
  await eventually(
    () => toasts(page),
    (shown) => expect(shown.join()).toContain("none of PNG"),
  );
  await soon(() => enclosed(page)).toBe(1);
  // Before the first letter, the key for deleting takes it away.
  await page.locator(id("composer")).click();
  await page.keyboard.press("Backspace");
  await eventually(
    () => enclosed(page),
    (count) => expect(count).toBe(0),
  );
});

it("with a model that does not see, nothing is attached and the reason is told", async () => {
  const page = await place.open("scene=history");
  const attach = page.locator(id("attach"));
  await attach.waitFor();
  await soon(() => attach.getAttribute("aria-disabled")).toBe("true");
  await soon(() => attach.getAttribute("title")).toContain("cannot see images");
  // It can be reached all the same, so that the reason is heard.
  await attach.click({ force: true });
  await paste(page, "cat.png", "image/png");
  await eventually(
    () => toasts(page),
    (shown) => expect(shown.join()).toContain("cannot see images"),
  );
  await soon(() => enclosed(page)).toBe(0);
});
