// The menus of the composer: what servers offer, taken along in a message.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { SendRequest } from "../../src/bindings/app";
import { barriers, eventually, id, soon, type Stand, stand, texts, tooWide } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterEach(() => expect(place.complaints()).toEqual([]));
afterAll(() => place.close());

const sent = (page: Page) => page.evaluate(() => (window as unknown as { sent?: SendRequest[] }).sent ?? []);
const options = (page: Page) => texts(page, `${id("composer-menu")} [role=option]`);

async function type(page: Page, text: string): Promise<void> {
  await page.locator(id("composer")).click();
  await page.keyboard.type(text);
}

it("@ takes a resource of a server along", async () => {
  const page = await place.open("scene=history");
  await type(page, "What about @lyon");
  const option = page.getByRole("option", { name: "Lyon" });
  await option.waitFor();
  await soon(() => option.getAttribute("aria-selected")).toBe("true");
  const marked = await page.locator(id("composer")).getAttribute("aria-activedescendant");
  await soon(() => option.getAttribute("id")).toBe(marked);
  await page.keyboard.press("Tab");
  await soon(() => page.locator(id("composer")).inputValue()).toBe("What about ");
  await page.locator(`${id("chips")} [data-uri="note:///Travel/Lyon.md"]`).waitFor();
  // The draft is kept with what goes along.
  await page.reload();
  await page.locator(`${id("chips")} [data-uri="note:///Travel/Lyon.md"]`).waitFor();
  await type(page, "the weather?");
  await page.keyboard.press("Enter");
  await eventually(
    () => sent(page),
    (requests) =>
      expect(requests).toEqual([
        {
          conversation: null,
          text: "What about the weather?",
          attachments: [{ server: "notes", uri: "note:///Travel/Lyon.md" }],
        },
      ]),
  );
  await page.locator(`${id("took")} summary`).click();
  await page.locator(`${id("took")} pre`).waitFor();
  await soon(() => page.locator(id("chips")).count()).toBe(0);
});

it("keys move in the menu, Escape closes it, and Backspace takes the last chip away", async () => {
  const page = await place.open("scene=history");
  await type(page, "@");
  await eventually(
    () => options(page),
    (seen) => expect(seen.length).toBeGreaterThan(3),
  );
  const selected = () => page.locator('[role=option][aria-selected="true"]').getAttribute("id");
  const first = await selected();
  await page.keyboard.press("ArrowDown");
  await soon(() => selected()).not.toBe(first);
  await page.keyboard.press("ArrowUp");
  await soon(() => selected()).toBe(first);
  await page.keyboard.press("ArrowUp");
  await soon(() => page.getByRole("option").last().getAttribute("aria-selected")).toBe("true");
  await page.keyboard.press("Escape");
  await soon(() => page.locator(id("composer-menu")).count()).toBe(0);
  await soon(() => page.locator(id("composer")).inputValue()).toBe("@");
  await page.keyboard.press("Backspace");
  await type(page, "@oat");
  await page.getByRole("option", { name: "Oat biscuits" }).click();
  await page.locator(id("chips")).waitFor();
  await page.keyboard.press("Backspace");
  await soon(() => page.locator(id("chips")).count()).toBe(0);
  await soon(() => sent(page)).toEqual([]);
});

it("a template asks for its variables, with the server's suggestions", async () => {
  const page = await place.open("scene=history");
  await type(page, "@a note");
  await page.getByRole("option", { name: "note:///{+path}" }).click();
  const field = page.locator("[data-blank=path]");
  await page.getByRole("option", { name: "Travel/Lyon.md" }).waitFor();
  await soon(() => field.getAttribute("aria-expanded")).toBe("true");
  await field.fill("Travel/2");
  await eventually(
    () => page.locator(`${id("fill")} [role=option]`).allInnerTexts(),
    (seen) => expect(seen.map((one) => one.trim())).toEqual(["Travel/2019 Norway by rail.md"]),
  );
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await soon(() => field.inputValue()).toBe("Travel/2019 Norway by rail.md");
  await page.keyboard.press("Enter");
  await page.locator(`${id("chips")} [data-uri="note:///Travel/2019%20Norway%20by%20rail.md"]`).waitFor();
});

it("/ runs a prompt; what it needs is asked for, and one choice narrows the next", async () => {
  const page = await place.open("scene=history");
  await type(page, "/team");
  await page.getByRole("option", { name: "Team management" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(id("fill")).waitFor();
  await page.locator(id("fill-done")).click();
  await page.locator("[data-blank=department][aria-invalid=true]").waitFor();
  await page.locator("[data-blank=department]").fill("Sales");
  await page.locator("[data-blank=name]").focus();
  await page.getByRole("option", { name: "Eve" }).click();
  await page.locator(id("fill-done")).click();
  const chip = page.locator(`${id("chips")} [data-prompt="everything:team"]`);
  await chip.waitFor();
  // It can still be changed.
  await chip.locator(".name").click();
  await soon(() => page.locator("[data-blank=name]").inputValue()).toBe("Eve");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await soon(() => page.locator(id("fill")).count()).toBe(0);
  await page.locator(id("send")).click();
  await eventually(
    () => sent(page),
    (requests) =>
      expect(requests.map(({ text, prompt }) => ({ text, prompt }))).toEqual([
        { text: "", prompt: { server: "everything", name: "team", arguments: { department: "Sales", name: "Eve" } } },
      ]),
  );
});

it("a prompt that takes nothing is ready at once, and hidden characters are shown", async () => {
  const page = await place.open("scene=history");
  await type(page, "/");
  await eventually(
    () => options(page),
    (seen) => expect(seen.join()).toContain("⟦U+202E⟧"),
  );
  await page.keyboard.type("simple");
  await page.getByRole("option", { name: "Simple prompt" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(`${id("chips")} [data-prompt="everything:simple-prompt"]`).waitFor();
  await soon(() => page.locator(id("composer")).inputValue()).toBe("");
});

it("says when no server offers anything, and where to look", async () => {
  const page = await place.open("scene=history&offers=none");
  await type(page, "@");
  await page.locator(id("composer-none")).waitFor();
  await page.locator(`${id("composer-none")} button`).click();
  await page.locator(id("servers-page")).waitFor();
});

it("a server that refuses is named, and what others offer is there all the same", async () => {
  const page = await place.open("scene=history&offers=refused");
  await type(page, "@");
  await page.locator('[data-problem="everything"]').waitFor();
  await soon(() => page.locator('[data-problem="everything"]').innerText()).toContain("internal error");
  await page.getByRole("option", { name: "Lyon" }).waitFor();
});

it("a server that is slow is named, and keeps nobody waiting", async () => {
  const page = await place.open("scene=history&offers=slow");
  await type(page, "@");
  await page.getByRole("option", { name: "Lyon" }).waitFor();
  await page.getByText("Asking everything").waitFor();
});

it("a very long list is searched, and long names stick out of nothing", async () => {
  const page = await place.open("scene=history&offers=many", { width: 720, height: 560 });
  await type(page, "@");
  await page.getByText("more. Type to narrow").waitFor();
  await soon(() => tooWide(page)).toEqual([]);
  await page.keyboard.type("day 777");
  await page.getByRole("option", { name: "Day 777" }).waitFor();
  await page.locator(id("composer")).fill("");
  await page.keyboard.type("@a day with");
  await page.getByRole("option", { name: "A day with" }).click();
  await page.locator(id("chips")).waitFor();
  await soon(() => tooWide(page)).toEqual([]);
});

it.each([false, true])("axe finds nothing in the menus and the form (dark: %s)", async (dark) => {
  const page = await place.open("scene=history&offers=refused", { dark });
  await page.emulateMedia({ colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" });
  await type(page, "@");
  await page.getByRole("option", { name: "Lyon" }).waitFor();
  await soon(() => barriers(page)).toEqual([]);
  await page.keyboard.type("a note");
  await page.getByRole("option", { name: "A note" }).waitFor();
  await page.keyboard.press("Enter");
  await page
    .locator(`${id("fill")} [role=option]`)
    .first()
    .waitFor();
  await page.locator(id("fill-done")).click();
  await page.locator("[data-blank=path][aria-invalid=true]").waitFor();
  await soon(() => barriers(page)).toEqual([]);
});

it("a turn that is tried again takes along what it took before", async () => {
  const page = await place.open("scene=history");
  await type(page, "fail @lyon");
  await page.getByRole("option", { name: "Lyon" }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Try again" }).click();
  await eventually(
    () => sent(page),
    (requests) => expect(requests).toHaveLength(2),
  );
  expect((await sent(page)).map(({ text, attachments }) => ({ text, attachments }))).toEqual(
    Array.from({ length: 2 }, () => ({
      text: "fail",
      attachments: [{ server: "notes", uri: "note:///Travel/Lyon.md" }],
    })),
  );
});
