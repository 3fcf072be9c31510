// A conversation that is longer than what is read of it at once.
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { barriers, id, soon, type Stand, stand, texts, tooWide } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterEach(() => expect(place.complaints()).toEqual([]));
afterAll(() => place.close());

it("earlier turns are read on the way up, and what is in sight stays there", async () => {
  const page = await place.open("scene=older");
  const asked = () => texts(page, id("message-user"));
  const log = page.getByRole("log");
  await soon(asked).toHaveLength(20);
  await soon(async () => (await asked()).at(-1)).toBe("Question number 45");
  // It is shown from its end.
  await soon(() => log.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight)).toBeLessThan(48);
  await soon(() => page.locator(id("earlier")).innerText()).toBe("25 earlier questions");
  expect(await barriers(page)).toEqual([]);
  expect(await tooWide(page)).toEqual([]);
  const top = () =>
    page
      .locator("article", { hasText: "Question number 26" })
      .evaluate((one) => Math.round(one.getBoundingClientRect().top));
  await log.evaluate((one) => one.scrollTo({ top: 700 }));
  const before = await top();
  await soon(asked).toHaveLength(40);
  await soon(top).toBe(before);
  await soon(() => page.locator(id("earlier")).innerText()).toBe("5 earlier questions");
  await page.locator(id("earlier")).focus();
  await page.keyboard.press("Enter");
  await soon(asked).toHaveLength(45);
  await soon(async () => (await asked())[0]).toBe("Question number 1");
  await soon(() => page.locator(id("earlier")).count()).toBe(0);
  await soon(() => page.locator("article").first().getAttribute("aria-label")).toBe("Question 1 and its answer");
});

it("what is sent from far up is shown, also when more comes before the next frame and while earlier turns are read", async () => {
  const page = await place.open("scene=older");
  const log = page.getByRole("log");
  const left = () => log.evaluate((one) => Math.round(one.scrollHeight - one.scrollTop - one.clientHeight));
  await soon(left).toBeLessThan(48);
  await page.locator(id("composer")).fill("And what of the hat?");
  // All in one frame: the user is far up, where earlier turns are read; sends; and there is more to show at once.
  await log.evaluate(async (one) => {
    one.scrollTo({ top: 300 });
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    document.querySelector<HTMLElement>('[data-testid="send"]')?.click();
    for (let i = 0; i < 50; i++) await Promise.resolve();
    const last = [...one.querySelectorAll("article")].at(-2);
    if (last) last.style.paddingBottom = "400px";
  });
  await soon(async () => (await texts(page, id("message-user"))).at(-1)).toBe("And what of the hat?");
  await soon(left).toBeLessThan(48);
  await soon(() => page.locator(id("send")).count()).toBe(1);
  await soon(left).toBeLessThan(48);
  await soon(() => page.getByRole("button", { name: "To the end" }).count()).toBe(0);
});
