// The rest of the window: the list, the trace, settings, the palette, keys.
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventually, id, soon, type Stand, stand, texts } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

it("conversations are found, renamed, deleted, and brought back", async () => {
  const page = await place.open("scene=answer");
  const list = page.locator(id("conversation-list"));
  await eventually(
    () => list.locator("[data-row]").count(),
    (seen) => expect(seen).toBe(5),
  );
  await page.keyboard.press("Control+f");
  await page.keyboard.type("昆明");
  await eventually(
    () => list.locator("[data-row]").allInnerTexts(),
    (seen) => expect(seen).toEqual(["昆明的旅馆"]),
  );
  await page.keyboard.press("Escape");
  await page.locator("header h1 button").click();
  await page.keyboard.type("A hat in Oslo");
  await page.keyboard.press("Enter");
  await eventually(
    () => texts(page, `${id("conversation-list")} [data-row]`),
    (seen) => expect(seen).toContain("A hat in Oslo"),
  );
  // By keys: the row's buttons come after it.
  await list.getByRole("button", { name: /^A hat in Oslo/ }).focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await eventually(
    () => list.locator("[data-row]").count(),
    (seen) => expect(seen).toBe(4),
  );
  await page.getByRole("button", { name: "Undo" }).click();
  await eventually(
    () => texts(page, `${id("conversation-list")} [data-row]`),
    (seen) => expect(seen).toContain("A hat in Oslo"),
  );
  await eventually(
    () => texts(page, id("message-user")),
    (seen) => expect(seen).toHaveLength(1),
  );
});

it("a draft is kept for each conversation, also over a reload", async () => {
  const page = await place.open("scene=history");
  await page.locator(id("composer")).fill("a new thought");
  await page
    .locator(`${id("conversation-list")} [data-row]`)
    .first()
    .click();
  await eventually(
    () => page.locator(id("composer")).inputValue(),
    (seen) => expect(seen).toBe(""),
  );
  await page.locator(id("composer")).fill("an old thought");
  await page.locator(id("new-conversation")).click();
  await eventually(
    () => page.locator(id("composer")).inputValue(),
    (seen) => expect(seen).toBe("a new thought"),
  );
  await page.reload();
  await eventually(
    () => page.locator(id("composer")).inputValue(),
    (seen) => expect(seen).toBe("a new thought"),
  );
});

it("the trace has a row for each step and call, with all that was said", async () => {
  const page = await place.open("scene=tools");
  await page.waitForSelector("text=The other note could not be opened");
  await page.keyboard.press("Control+j");
  const rows = page.locator(id("trace-row"));
  const kinds = await rows.evaluateAll((all) => all.map((one) => one.getAttribute("data-kind")));
  expect(kinds).toEqual(["step", "call", "step", "call", "step", "step", "call", "call", "call", "notice", "step"]);
  await soon(() => rows.nth(2).innerText()).toMatch(/598[\s\S]*517[\s\S]*26/);
  await rows.nth(1).getByRole("button").click();
  await page.getByRole("tab", { name: "Messages" }).click();
  await soon(() => page.getByRole("tabpanel").innerText()).toContain('"method": "tools/call"');
  await page.keyboard.press("ArrowRight");
  await soon(() => page.getByRole("tabpanel").innerText()).toContain("indexed 74 notes");
  await page.getByRole("tab", { name: "Result" }).click();
  await soon(() => page.getByRole("tabpanel").innerText()).toContain("[1] Norway by rail");
});

it("the trace can be searched, and widened by keys", async () => {
  const page = await place.open("scene=tools&trace=1");
  const panel = page.locator(id("trace-panel"));
  await panel.getByRole("searchbox").fill("4,812 words");
  await eventually(
    () => page.locator(id("trace-row")).count(),
    (seen) => expect(seen).toBe(1),
  );
  const before = (await panel.boundingBox())?.width ?? 0;
  await panel.getByRole("separator").focus();
  await page.keyboard.press("ArrowLeft");
  await eventually(
    async () => (await panel.boundingBox())?.width ?? 0,
    (seen) => expect(seen).toBe(before + 16),
  );
  await page.reload();
  await eventually(
    async () => (await panel.boundingBox())?.width ?? 0,
    (seen) => expect(seen).toBe(before + 16),
  );
});

it("a tool card leads to its row of the trace", async () => {
  const page = await place.open("scene=tools");
  const card = page.locator(`${id("tool-card")}[data-state="failed"]`);
  await card.getByRole("button").first().click();
  await card.getByRole("button", { name: "Show in trace" }).click();
  const call = await card.getAttribute("data-call");
  const open = page.locator(`${id("trace-row")}:has([aria-expanded="true"])`);
  await eventually(
    () => open.getAttribute("data-key"),
    (seen) => expect(seen).toContain(`:${call}`),
  );
});

it("pages of settings have their own address", async () => {
  const page = await place.open("scene=history", { hash: "#/settings/servers" });
  await page.locator(id("servers-page")).waitFor();
  const failed = page.locator('[data-server="files"]');
  await soon(() => failed.getAttribute("data-state")).toBe("failed");
  await soon(() => failed.locator(id("error")).innerText()).toContain("exit code 1");
  await failed.getByRole("button", { name: "Restart" }).click();
  await eventually(
    () => failed.getAttribute("data-state"),
    (seen) => expect(seen).toBe("ready"),
  );
  await page.getByRole("searchbox", { name: "Search settings" }).fill("dark");
  await page.keyboard.press("Enter");
  await eventually(
    async () => page.url(),
    (seen) => expect(seen).toContain("#/settings/general"),
  );
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.locator(id("composer")).waitFor();
});

it("language and theme change at once and stay", async () => {
  const page = await place.open("scene=first", { hash: "#/settings/general" });
  await page.locator("#language").selectOption("fr");
  await soon(() => page.locator(id("settings")).innerText()).toContain("Apparence");
  await page.getByRole("radio", { name: "Sombre" }).check();
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await soon(() => paper()).toBe("rgb(25, 24, 22)");
  await page.reload();
  await eventually(paper, (seen) => expect(seen).toBe("rgb(25, 24, 22)"));
  await soon(() => page.evaluate(() => document.documentElement.lang)).toBe("fr");
});

it("the model is chosen in the header; a broken file can't be", async () => {
  const page = await place.open("scene=answer");
  await page.locator(id("model-picker")).click();
  await soon(() => page.locator('[data-model="broken"]').isDisabled()).toBe(true);
  await soon(() => page.getByRole("dialog").innerText()).toContain("A very small model");
  await page.locator('[data-model="llama-3.2-3b"]').click();
  await eventually(
    () => page.locator(id("model-picker")).innerText(),
    (seen) => expect(seen).toContain("Llama 3.2"),
  );
});

it("a model is chosen for a message, a conversation, or everything", async () => {
  const page = await place.open("scene=providers", { hash: "#/c/conversation-1" });
  const picker = page.locator(id("model-picker"));
  const choose = async (scope: string, model: string) => {
    await picker.click();
    await page.locator(`[data-scope="${scope}"]`).check();
    await page.locator(`.panel [data-model="${model}"]`).click();
  };
  const shows = (...parts: string[]) =>
    eventually(
      () => picker.innerText(),
      (seen) => {
        for (const part of parts) expect(seen).toContain(part);
      },
    );
  const sent = () => page.evaluate(() => (window as unknown as { sent?: { model?: string }[] }).sent ?? []);
  await shows("Gemini 3 Flash", "remote");
  await soon(() => page.locator(id("leaves")).innerText()).toContain("leaves this computer");
  await picker.click();
  const list = await page.getByRole("dialog").innerText();
  for (const part of ["On this computer", "Remote", "Vertex AI", "sees pictures", "1,024k context", "€0.3 / €2.5"]) {
    expect(list).toContain(part);
  }
  await page.keyboard.press("Escape");
  await choose("conversation", "starter");
  await shows("Lectern Starter", "of this conversation");
  await soon(() => page.locator(id("leaves")).count()).toBe(0);
  await choose("message", "qwen-remote");
  await shows("qwen3:14b", "next message only");
  await page.locator(id("composer")).fill("Where did Thomas lose his hat?");
  await page.keyboard.press("Enter");
  await shows("Lectern Starter", "of this conversation");
  await eventually(sent, (seen) => expect(seen.map(({ model }) => model)).toEqual(["qwen-remote"]));
  // It is remembered by the app, not by the page.
  await page.locator(id("model-picker")).click();
  await page.locator(id("as-everywhere")).click();
  await shows("Gemini 3 Flash");
});

it("a new conversation takes its own model along", async () => {
  const page = await place.open("scene=providers", { hash: "#/" });
  await page.locator(id("model-picker")).click();
  await page.locator('[data-scope="conversation"]').check();
  await page.locator('.panel [data-model="llama-3.2-3b"]').click();
  await page.locator(id("composer")).fill("Hello");
  await page.keyboard.press("Enter");
  await eventually(
    () => page.locator(id("model-picker")).innerText(),
    (seen) => expect(seen).toMatch(/Llama 3\.2[^]*of this conversation/),
  );
  await page.locator('[data-testid="message-assistant"][data-running="false"]').waitFor();
  await soon(() => page.locator(id("message-assistant")).innerText()).toContain("Llama 3.2 3B");
});

it("everything has its key", async () => {
  const page = await place.open("scene=answer");
  await page.waitForSelector("text=opera house");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("server");
  await page.keyboard.press("Enter");
  await page.locator(id("servers-page")).waitFor();
  await page.keyboard.press("Escape");
  await page.locator(id("composer")).waitFor();
  await page.keyboard.press("Control+,");
  await page.locator(id("settings")).waitFor();
  await page.keyboard.press("Control+n");
  await eventually(
    () => page.locator(id("composer")).evaluate((one) => one === document.activeElement),
    (seen) => expect(seen).toBe(true),
  );
  await page.keyboard.type("?");
  await soon(() => page.locator(id("composer")).inputValue()).toBe("?");
  await page.locator("[role=log]").focus();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await eventually(
    () => page.getByRole("dialog").count(),
    (seen) => expect(seen).toBe(0),
  );
});

it("the composer offers commands after /", async () => {
  const page = await place.open("scene=answer");
  await page.waitForSelector("text=opera house");
  const composer = page.locator(id("composer"));
  await composer.click();
  await page.keyboard.type("/serv");
  await page.getByRole("option", { name: "Settings: Servers" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(id("servers-page")).waitFor();
  await page.keyboard.press("Escape");
  await eventually(
    () => composer.inputValue(),
    (seen) => expect(seen).toBe(""),
  );
  await composer.click();
  await page.keyboard.type("/new");
  await page.keyboard.press("Escape");
  await soon(() => page.getByRole("listbox").count()).toBe(0);
  await soon(() => composer.inputValue()).toBe("/new");
});

it("arrows go from message to message", async () => {
  const page = await place.open("scene=tools");
  await page.waitForSelector("text=The other note could not be opened");
  await page.locator(id("composer")).focus();
  await page.keyboard.press("ArrowUp");
  const label = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  await soon(() => label()).toBe("Question 2 and its answer");
  await page.keyboard.press("ArrowUp");
  await soon(() => label()).toBe("Question 1 and its answer");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await eventually(
    () => page.locator(id("composer")).evaluate((one) => one === document.activeElement),
    (seen) => expect(seen).toBe(true),
  );
});

it("under 760 px the list is a drawer, under 1000 px the trace lies over the page", async () => {
  const page = await place.open("scene=answer&trace=1", { width: 700, height: 600 });
  await soon(() => page.locator(id("conversation-list")).count()).toBe(0);
  await page.keyboard.press("Escape");
  await eventually(
    () => page.locator(id("trace-panel")).count(),
    (seen) => expect(seen).toBe(0),
  );
  await page.getByRole("button", { name: "Show or hide the list" }).click();
  await page
    .locator(`${id("conversation-list")} [data-row]`)
    .nth(1)
    .click();
  await eventually(
    () => page.locator(id("conversation-list")).count(),
    (seen) => expect(seen).toBe(0),
  );
});

it("a window that can't start says why", async () => {
  const page = await place.open("scene=broken");
  await page.locator(id("error")).waitFor();
  await soon(() => page.locator(id("error")).innerText()).toContain("not a database");
});
