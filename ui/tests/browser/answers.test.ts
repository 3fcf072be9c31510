// How a model answers: for the model, and for one conversation.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventually, id, soon, type Stand, stand } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

const setting = (page: Page, key: string) => page.locator(`[data-setting="${key}"]`);
const origin = (page: Page, key: string, wanted: string) =>
  eventually(
    () => setting(page, key).getAttribute("data-origin"),
    (seen) => expect(seen).toBe(wanted),
  );

async function set(page: Page, key: string, text: string): Promise<void> {
  const field = setting(page, key).locator("input, textarea").first();
  await field.fill(text);
  await field.blur();
}

it("what is set for a model holds, says where it comes from, and is taken back", async () => {
  const page = await place.open("scene=models", { hash: "#/settings/models/id/qwen3-4b/generation" });
  await origin(page, "temperature", "usual");
  await set(page, "temperature", "0,3");
  await origin(page, "temperature", "model");
  await soon(() => setting(page, "temperature").locator("input").inputValue()).toBe("0.3");
  await page.getByRole("button", { name: "Temperature: back to what it would be" }).click();
  await origin(page, "temperature", "usual");
});

it("what is not accepted says why, beside its field, and changes nothing", async () => {
  const page = await place.open("scene=models", { hash: "#/settings/models/id/qwen3-4b/generation" });
  await set(page, "temperature", "9");
  await eventually(
    () => setting(page, "temperature").innerText(),
    (seen) => expect(seen).toContain("a number from 0 to 5, not 9"),
  );
  await origin(page, "temperature", "usual");
  await set(page, "json_schema", "{ not json");
  await eventually(
    () => setting(page, "json_schema").innerText(),
    (seen) => expect(seen).toContain("no JSON object"),
  );
  await set(page, "json_schema", '{ "type": "object" }');
  await origin(page, "json_schema", "model");
});

it("settings are kept as a preset, which is used and deleted", async () => {
  const page = await place.open("scene=models", { hash: "#/settings/models/id/qwen3-4b/generation" });
  await set(page, "temperature", "0.2");
  await set(page, "stop", "END\n\\n\\nUser:");
  await page.locator(id("keep-preset")).click();
  await page.locator(id("preset-name")).fill("Careful");
  await page.keyboard.press("Enter");
  await origin(page, "temperature", "model_preset");
  await soon(() => setting(page, "temperature").innerText()).toContain("by the model’s preset Careful");
  await soon(() => setting(page, "stop").locator("textarea").getAttribute("placeholder")).toBe("END\n\\n\\nUser:");
  await page.getByRole("button", { name: "Delete the preset Careful" }).click();
  await origin(page, "temperature", "usual");
  await setting(page, "preset").locator("select").selectOption("precise");
  await origin(page, "temperature", "model_preset");
  await soon(() => setting(page, "temperature").innerText()).toContain("by the model’s preset Precise");
  await page.locator(id("reset-all")).click();
  await origin(page, "temperature", "usual");
});

it("a conversation has its own, over those of the model", async () => {
  const page = await place.open("scene=answer");
  await page.locator(id("answers-button")).click();
  await origin(page, "temperature", "usual");
  // What would load the model anew belongs to the model.
  await soon(() => setting(page, "context_length").count()).toBe(0);
  await set(page, "temperature", "1.1");
  await origin(page, "temperature", "conversation");
  await page.keyboard.press("Escape");
  await soon(() => page.locator(id("answers-sheet")).count()).toBe(0);
  await soon(() => page.evaluate(() => document.activeElement?.getAttribute("data-testid"))).toBe("answers-button");
});

it("settings begin a conversation that has no message yet", async () => {
  const page = await place.open("scene=first");
  await page.locator(id("answers-button")).click();
  await setting(page, "gate").locator("select").selectOption("true");
  await eventually(
    async () => page.url(),
    (seen) => expect(seen).toContain("#/c/"),
  );
  await origin(page, "gate", "conversation");
});

it("tools to be shown always are chosen from those that there are", async () => {
  const page = await place.open("scene=models", { hash: "#/settings/models/id/qwen3-4b/tools" });
  await setting(page, "pinned_tools").getByLabel("Add a tool…").selectOption("notes__read_note");
  await origin(page, "pinned_tools", "model");
  await soon(() => setting(page, "pinned_tools").locator("textarea").inputValue()).toBe("notes__read_note");
  await setting(page, "tools").locator("select").selectOption("relevant");
  await origin(page, "tools", "model");
});
