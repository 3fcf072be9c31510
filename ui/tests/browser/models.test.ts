// The page of models: all that a person does there.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventually, id, soon, type Stand, stand, texts } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

const open = (where = "", scene = "models") => place.open(`scene=${scene}`, { hash: `#/settings/models${where}` });
const row = (page: Page, model: string) => page.locator(`[data-model="${model}"]`);
const download = (page: Page, name: string) => page.locator(`[data-download="${name}"]`);
const says = (page: Page, selector: string, wanted: string | RegExp) =>
  eventually(
    async () => (await texts(page, selector)).join("\n"),
    (seen) => (typeof wanted === "string" ? expect(seen).toContain(wanted) : expect(seen).toMatch(wanted)),
  );

it("each model says what it is and whether it fits", async () => {
  const page = await open();
  await row(page, "starter").waitFor();
  const verdicts = ["llama-3.2-3b", "gemma", "coder"].map((model) =>
    row(page, model).locator("[data-advice]").getAttribute("data-advice"),
  );
  await soon(() => Promise.all(verdicts)).toEqual(["fits", "tight", "too_big"]);
  const facts = await row(page, "llama-3.2-3b").innerText();
  for (const part of ["3.2B weights", "Q4_K_M", "2.0 GB", "128k tokens of context", "9.4 tokens/s"]) {
    expect(facts).toContain(part);
  }
  await soon(() => row(page, "gemma").innerText()).toContain("tools by prompt");
  // What is broken or gone says why, and can't be chosen.
  await soon(() => row(page, "broken").innerText()).toContain("lies outside the file");
  await soon(() => row(page, "gone").innerText()).toContain("Its file is gone");
  await soon(() => row(page, "gone").locator(id("use-model")).count()).toBe(0);
});

it("a model is chosen", async () => {
  const page = await open();
  await page.getByRole("button", { name: "Use Qwen3 4B" }).click();
  await eventually(
    () => row(page, "qwen3-4b").getAttribute("data-chosen"),
    (seen) => expect(seen).toBe("true"),
  );
});

it("removing says what becomes of the file, and is undone", async () => {
  const page = await open();
  await page.getByRole("button", { name: "Remove Qwen3 4B from the list" }).click();
  await says(page, id("toast"), "its file deleted (2.5 GB)");
  await soon(() => row(page, "qwen3-4b").count()).toBe(0);
  await page.getByRole("button", { name: "Undo" }).click();
  await row(page, "qwen3-4b").waitFor();
  await page.getByRole("button", { name: "Remove Gemma 3 12B it from the list" }).click();
  await says(page, id("toast"), "Its file stays");
});

it("a model's need for memory follows the context", async () => {
  const page = await open("/id/llama-3.2-3b");
  const need = page.locator(id("memory-need"));
  const total = async () => Number(await need.getAttribute("data-total"));
  await need.waitFor();
  const before = await total();
  await need.getByRole("slider").focus();
  await page.keyboard.press("End");
  await eventually(total, (seen) => expect(seen).toBeGreaterThan(before * 2));
  await soon(() => need.getByRole("slider").getAttribute("aria-valuetext")).toBe("131,072 tokens");
  await need.getByRole("button", { name: "Suggested: 16,384" }).click();
  await eventually(
    () => need.getByRole("slider").getAttribute("aria-valuetext"),
    (seen) => expect(seen).toBe("16,384 tokens"),
  );
  // A template is text, whatever is in it.
  await page.getByText("Template", { exact: true }).click();
  await soon(() => page.locator("[role=tabpanel] pre").innerText()).toContain("<b>not markup</b>");
});

it("a model is tested, and a test that fails says why", async () => {
  const page = await open("/id/qwen3-4b");
  await page.locator(id("bench-run")).click();
  await says(page, id("bench-result"), "9.4 tokens/s");
  const other = await open("/id/coder");
  await other.locator(id("bench-run")).click();
  await says(other, `${id("bench")} [role=alert]`, "not enough memory");
});

it("a model of the short list is downloaded, shown in the header, and used", async () => {
  const page = await open("/get", "history");
  await page.getByRole("button", { name: "Download SmolLM3 3B" }).click();
  await download(page, "SmolLM3-Q4_K_M.gguf").waitFor();
  await page.getByRole("button", { name: "Pause the download of SmolLM3-Q4_K_M.gguf" }).click();
  await eventually(
    () => download(page, "SmolLM3-Q4_K_M.gguf").getAttribute("data-state"),
    (seen) => expect(seen).toBe("paused"),
  );
  await page.getByRole("button", { name: "Go on with the download of SmolLM3-Q4_K_M.gguf" }).click();
  await page.evaluate(() => (location.hash = "#/"));
  await page.locator(id("downloads-button")).waitFor();
  await says(page, id("toast"), "SmolLM3-Q4_K_M.gguf is here");
  await soon(() => page.locator(id("downloads-button")).count()).toBe(0);
  await page.getByRole("button", { name: "Use it" }).click();
  await says(page, id("model-picker"), "SmolLM3-Q4_K_M");
});

it("what can't be downloaded says so where it was asked for", async () => {
  const page = await open("/get", "history");
  await page.getByRole("button", { name: "Download Mistral Small 3.2 24B" }).click();
  await says(page, "[data-curated] [role=alert]", "14.3 GB are needed");
});

it("any repository is looked into, and its files come with advice", async () => {
  const page = await open("/get");
  await page.locator(id("target")).fill("not a name");
  await page.locator(id("look")).click();
  await says(page, "form [role=alert]", "owner/model");
  await page.locator(id("target")).fill("nobody/nothing");
  await page.keyboard.press("Enter");
  await says(page, id("error"), "there is no repository");
  await page.locator(id("target")).fill("https://huggingface.co/Qwen/Qwen3-4B-GGUF");
  await page.keyboard.press("Enter");
  const files = page.locator(`${id("repository")} [data-file]`);
  await files.first().waitFor();
  await soon(() => files.count()).toBe(4);
  await soon(() => files.nth(1).innerText()).toContain("On your list");
  await page.getByRole("button", { name: "Download Qwen3-4B-Q8_0.gguf" }).click();
  await files.nth(2).locator(id("on-its-way")).waitFor();
});

it("a failed download has its reason and a way out", async () => {
  const page = await open();
  const failed = download(page, "phi-4-mini-instruct-Q4_K_M.gguf");
  await soon(() => failed.innerText()).toContain("2.5 GB are needed, 1.1 GB are free");
  await failed.locator(id("resume")).click();
  await eventually(
    () => failed.getAttribute("data-state"),
    (seen) => expect(seen).toBe("running"),
  );
  await failed.locator(id("cancel")).click();
  await eventually(
    () => failed.count(),
    (seen) => expect(seen).toBe(0),
  );
});

it("folders are watched and left alone again", async () => {
  const page = await open();
  const folders = page.locator(id("model-folders"));
  await folders.getByRole("button", { name: "Watch /home/lena/.ollama/models" }).click();
  await folders.getByRole("button", { name: "Stop watching /home/lena/.ollama/models" }).waitFor();
  await page.locator(id("add-folder")).click();
  await folders.getByRole("button", { name: "Stop watching /home/lena/Downloads" }).click();
  await eventually(
    () => folders.innerText(),
    (seen) => expect(seen).not.toContain("/home/lena/Downloads"),
  );
  await soon(() => folders.innerText()).toContain("Plug the disk in again.");
});

it("a file that is dragged over the window is announced, and added when it is let go of", async () => {
  const page = await place.open("scene=history");
  await page.locator(id("composer")).waitFor();
  const drop = (news: unknown) =>
    page.evaluate((news) => (window as unknown as { fakeDrop(news: unknown): void }).fakeDrop(news), news);
  await drop({ type: "over", models: [], images: [], keys: [], others: 2 });
  await says(page, id("drop-target"), "Only model files");
  await drop({ type: "left" });
  await drop({ type: "over", models: ["tiny.gguf"], images: [], keys: [], others: 1 });
  await says(page, id("drop-target"), /add 1 model[^]*tiny\.gguf[^]*1 other file/);
  await drop({ type: "dropped", models: ["tiny.gguf"], images: [], keys: [], others: 1 });
  await says(page, id("toast"), "tiny.gguf was added");
  await soon(() => page.locator(id("drop-target")).count()).toBe(0);
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await row(page, "dropped").waitFor();
});

it("the model is wanted from the first key on", async () => {
  const page = await place.open("scene=history");
  await page.locator(id("composer")).pressSequentially("Where");
  const wanted = () => page.evaluate(() => (window as unknown as { wanted?: { draft: string }[] }).wanted ?? []);
  await eventually(wanted, (seen) => expect(seen.at(-1)).toEqual({ conversation: null, draft: "Where" }));
  expect((await wanted())[0]).toEqual({ conversation: null, draft: "W" });
});

it("a token is kept and never shown again; a mirror is set", async () => {
  const page = await open("/get", "history");
  await page.locator(`${id("hub")} summary`).click();
  await page.locator(id("hub-token")).fill("hf_secret of mine");
  await page.keyboard.press("Enter");
  await says(page, `${id("hub")} [role=alert]`, "no spaces");
  await page.locator(id("hub-token")).fill("hf_secret");
  await page.keyboard.press("Enter");
  await says(page, id("hub-token-state"), "One is kept.");
  await soon(() => page.locator(id("hub-token")).inputValue()).toBe("");
  await soon(() => page.content()).not.toContain("hf_secret");
  await page.locator(id("hub-mirror")).fill("nowhere");
  await page.locator(id("hub-mirror")).blur();
  await says(page, `${id("hub")} [role=alert]`, "no web address");
  await page.getByRole("button", { name: "Forget it" }).click();
  await says(page, id("hub-token-state"), "None is kept.");
});
