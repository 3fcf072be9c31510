// The page of remote models: all that a person does there.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { barriers, eventually, id, soon, type Stand, stand, texts, tooWide } from "./page";

let place: Stand;
beforeAll(async () => {
  place = await stand();
});
afterAll(() => place.close());
afterEach(() => expect(place.complaints()).toEqual([]));

const open = (where = "", scene = "providers") =>
  place.open(`scene=${scene}`, { hash: `#/settings/providers${where}` });
const says = (page: Page, selector: string, wanted: string | RegExp) =>
  eventually(
    async () => (await texts(page, selector)).join("\n"),
    (seen) => (typeof wanted === "string" ? expect(seen).toContain(wanted) : expect(seen).toMatch(wanted)),
  );
/** What the page keeps somewhere: its markup, what it stores, its address, its fields. */
const kept = (page: Page) =>
  page.evaluate(() =>
    [
      document.documentElement.outerHTML,
      JSON.stringify({ ...localStorage, ...sessionStorage }),
      location.href,
      ...[...document.querySelectorAll("input")].map((field) => field.value),
    ].join("\n"),
  );

it("before the first provider it says what they are for and what leaves the computer", async () => {
  const page = await open("", "history");
  await says(page, id("what-leaves"), "passages of your notes");
  await says(page, id("providers-page"), "No provider yet.");
  await page.locator(id("add-provider")).click();
  await page.locator(id("provider-form")).waitFor();
});

it("each provider says who is signed in and where the secret is", async () => {
  const page = await open();
  const one = (provider: string) => page.locator(`[data-provider="${provider}"]`).innerText();
  await page.locator(id("provider-list")).waitFor();
  await soon(() => one("vertex")).toContain("lectern@notes-of-lena-481516.iam.gserviceaccount.com");
  await soon(() => one("gemini")).toContain("Only for this session");
  await soon(() => one("ollama")).toContain("stays on this computer");
  await soon(() => one("nas")).toContain("leaves this computer, for your network");
  await soon(() => one("adc")).toContain("has expired");
  await page.locator('[data-provider="router"] a').click();
  await says(page, id("login-place"), "LECTERN_ROUTER_KEY");
});

it("an endpoint is added by a preset, its models fetched, one added, tested and used", async () => {
  const page = await open("/new", "history");
  await page.locator('[data-preset="Ollama"]').click();
  await soon(() => page.locator(id("provider-address")).inputValue()).toBe("http://localhost:11434/v1");
  await says(page, id("reach-note"), "this computer");
  await page.locator(id("provider-save")).click();
  await says(page, id("login"), "No sign-in needed");
  await page.locator(id("fetch-models")).click();
  await page.getByRole("button", { name: "Add qwen3:14b to your list" }).click();
  await page.locator(`${id("provider-models")} [data-model]`).waitFor();
  await page.locator(id("test-run")).click();
  await page.locator(id("tested")).nth(1).waitFor();
  const seen = await texts(page, id("tested"));
  expect(seen[0]).toContain("pong <b>");
  expect(seen[0]).toContain("21 tokens read, 9 written");
  expect(seen[1]).toContain('add({"a":2,"b":3})');
  await page.locator(id("use-model")).click();
  await says(page, id("provider-models"), "In use");
});

it("a test that finds something wrong says so", async () => {
  const page = await open("/id/ollama");
  await page.locator(id("model-name")).fill("llama3.2:3b");
  await page.locator(id("add-named")).click();
  await page.getByRole("button", { name: "Test llama3.2:3b" }).click();
  await says(page, `${id("tested")}[data-passed=false]`, "wrote text where a call was wanted");
});

it("fetching and testing are stopped", async () => {
  const page = await open("/id/nas");
  await page.locator(id("fetch-models")).click();
  await says(page, id("offered"), "Asking vLLM for its models");
  await page.locator(id("fetch-stop")).click();
  await says(page, id("offered"), "Stopped.");
  await page.locator(id("model-name")).fill("m");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Test m", exact: true }).click();
  await page.locator(id("test-stop")).click();
  await says(page, id("model-test"), "The test was stopped.");
  await soon(() => page.locator(id("error")).count()).toBe(0);
});

it("a list that can't be had has its reason and a way out", async () => {
  const page = await open("/id/adc");
  await page.locator(id("fetch-models")).click();
  await says(page, id("offered"), /could not be had[^]*nobody is signed in[^]*Sign in above/);
  // A link in a way out is a link, opened outside of the window.
  await page.getByRole("link", { name: "https://cloud.google.com/docs/authentication" }).click();
  const opened = () => page.evaluate(() => (window as unknown as { openedLinks?: string[] }).openedLinks);
  await eventually(opened, (seen) => expect(seen).toEqual(["https://cloud.google.com/docs/authentication"]));
});

it("many models are searched, and not all drawn", async () => {
  const page = await open("/id/vertex");
  await page.locator(id("fetch-models")).click();
  await says(page, id("offered"), "82 models");
  await soon(() => page.locator("[data-offered]").count()).toBe(60);
  await says(page, id("offered"), "22 more");
  await soon(() => page.locator('[data-offered="gemini-3-flash"]').innerText()).toContain("On your list");
  await page.locator(id("search-models")).fill("PRO 3");
  await eventually(
    () => page.locator("[data-offered]").count(),
    (seen) => expect(seen).toBe(1),
  );
});

it("a key is sent once, and kept nowhere in the page", async () => {
  const page = await open("/new", "history");
  await page.locator('[data-kind="gemini"]').check();
  const key = page.locator(id("provider-key"));
  await soon(() => key.getAttribute("type")).toBe("password");
  await key.fill("AIza-my-secret");
  await page.locator(id("provider-save")).click();
  await says(page, id("login-place"), "keyring");
  await soon(() => kept(page)).not.toContain("AIza-my-secret");
  const sent = await page.evaluate(() => (window as unknown as { signIns: unknown[] }).signIns);
  expect(sent).toEqual([{ id: "gemini", type: "key", length: 14 }]);
  await page.locator(id("sign-out")).click();
  await says(page, id("login"), "Not signed in");
});

it("a key that is refused says so on the page of the provider, and is not kept either", async () => {
  const page = await open("/new", "history");
  await page.locator('[data-kind="gemini"]').check();
  await page.locator(id("provider-key")).fill("two words of secret");
  await page.locator(id("provider-save")).click();
  await says(page, id("sign-in-panel"), "the key has spaces in it");
  await soon(() => kept(page)).not.toContain("words of secret");
  await page.locator(id("secret")).fill("for-this-session");
  await page.locator(id("keep-secret")).click();
  await says(page, id("login-place"), "Only for this session");
  await says(page, id("toast"), "Install gnome-keyring");
  await soon(() => kept(page)).not.toContain("for-this-session");
});

it("a key that would be read on the way is refused while it is typed", async () => {
  const page = await open("/new", "history");
  await page.locator(id("provider-address")).fill("http://models.example.org/v1");
  await says(page, id("reach-note"), "leaves this computer");
  await page.locator(id("provider-key")).fill("k");
  await says(page, id("key-risk"), "unencrypted over the internet");
  await soon(() => page.locator(id("provider-save")).isDisabled()).toBe(true);
  await page.locator(id("provider-address")).fill("http://nas:8000/v1");
  await says(page, id("key-risk"), "in your network can read it");
  await soon(() => page.locator(id("provider-save")).isDisabled()).toBe(false);
  await page.locator(id("provider-address")).fill("https://models.example.org/v1");
  await eventually(
    () => page.locator(id("key-risk")).count(),
    (seen) => expect(seen).toBe(0),
  );
});

it("Vertex AI: a login that was found is shown, and used only after a yes; a key is pasted", async () => {
  const page = await open("/new", "history");
  await page.locator('[data-kind="vertex"]').check();
  await page.locator(id("provider-project")).fill("my-project");
  await page.locator(id("provider-location")).fill("eu");
  await page.locator(id("provider-save")).click();
  await says(page, id("login"), "Not signed in");
  await page.locator('[data-way="application_default"]').check();
  await says(page, id("found-login"), /lena@example\.org[^]*login of a person/);
  await says(page, id("login"), "Not signed in");
  await page.locator(id("use-found-login")).click();
  await says(page, id("login"), "Signed in as lena@example.org");
  await page.locator(id("sign-out")).click();
  await page.locator('[data-way="service_account"]').check();
  const json = '{"type":"service_account","private_key":"-----BEGIN-SECRET-----"}';
  await soon(() => page.locator(id("secret")).getAttribute("type")).toBe("password");
  await page.locator(id("secret")).fill(json);
  await page.locator(id("keep-secret")).click();
  await says(page, id("login"), "robot@project.iam.gserviceaccount.com");
  await soon(() => kept(page)).not.toContain("BEGIN-SECRET");
});

it("Vertex AI: a login that was found is offered, and still used only after a yes", async () => {
  const page = await open("/new", "history");
  await page.locator('[data-kind="vertex"]').check();
  await page.locator(id("provider-save")).click();
  await says(page, id("offered-login"), "found on this computer: lena@example.org");
  await soon(() => barriers(page)).toEqual([]);
  await page.locator(id("offered-login")).getByRole("button").click();
  await soon(() => page.locator('[data-way="application_default"]').isChecked()).toBe(true);
  await says(page, id("found-login"), "used only when you say so");
  await says(page, id("login"), "Not signed in");
  await soon(() => page.locator(id("offered-login")).count()).toBe(0);
  await page.locator(id("use-found-login")).click();
  await says(page, id("login"), "Signed in as lena@example.org");
});

it("a provider is changed, removed with its models, and comes back", async () => {
  const page = await open("/id/ollama");
  await page.locator(id("edit-provider")).click();
  await page.locator(id("provider-name")).fill("Ollama of mine");
  await page.locator(id("provider-save")).click();
  await says(page, "h2", "Ollama of mine");
  await page.locator(id("remove-provider")).click();
  await says(page, id("toast"), "Ollama of mine was removed, with 1 model.");
  await soon(() => page.locator('[data-provider="ollama"]').count()).toBe(0);
  await page.getByRole("button", { name: "Undo" }).click();
  await says(page, '[data-provider="ollama"]', "1 model");
});

it("what a model costs is typed with a comma, and what is no number is not taken", async () => {
  const page = await place.open("scene=providers", { hash: "#/settings/models/id/qwen-remote" });
  await page.locator(id("price-input")).fill("much");
  await says(page, `${id("remote-form")} [role=alert]`, "no number");
  await page.locator(id("price-input")).fill("0,30");
  await page.locator(id("price-output")).fill("2.5");
  await page.locator(id("remote-save")).click();
  await says(page, `${id("remote-form")} [role=status]`, "Saved.");
  await page.evaluate(() => (location.hash = "#/settings/providers/id/ollama"));
  await says(page, id("facts"), "$0.3 / $2.5 per million");
});

type News = { type: string; models: string[]; images: string[]; keys: string[]; others: number };
const drag = (page: Page, type: "over" | "dropped", keys: string[]) =>
  page.evaluate((news) => (window as unknown as { fakeDrop(news: News): void }).fakeDrop(news), {
    type,
    models: [],
    images: [],
    keys,
    others: 0,
  });

it("a key file that is let go of over the form of a new Vertex AI adds it and signs in", async () => {
  const page = await open("/new", "history");
  await page.locator('[data-kind="gemini"]').check();
  const fits = () => page.locator(id("drop-target")).getAttribute("data-fits");
  await drag(page, "over", ["key.json"]);
  await soon(fits).toBe("false");
  await page.locator('[data-kind="vertex"]').check({ force: true });
  await soon(fits).toBe("true");
  await says(page, id("drop-target"), "key.json");
  await drag(page, "dropped", ["key.json"]);
  await says(page, id("login"), "robot@project.iam.gserviceaccount.com");
  const sent = await page.evaluate(() => (window as unknown as { signIns: unknown[] }).signIns);
  expect(sent).toEqual([{ id: "vertex", type: "service_account", length: 2 }]);
});

it("a key file that is let go of over a page of nobody does nothing", async () => {
  const page = await open("/id/ollama");
  await page.locator(id("edit-provider")).waitFor();
  await drag(page, "over", ["key.json"]);
  await soon(() => page.locator(id("drop-target")).getAttribute("data-fits")).toBe("false");
  await drag(page, "dropped", ["key.json"]);
  await soon(() => page.locator(id("drop-target")).count()).toBe(0);
  const sent = await page.evaluate(() => (window as unknown as { signIns?: unknown[] }).signIns ?? []);
  expect(sent).toEqual([]);
});

it("how hard models think and what is held back are set for a provider, and unset again", async () => {
  const page = await open("/id/vertex");
  const edit = async () => {
    await page.locator(id("edit-provider")).click();
    await page.locator(`${id("provider-options")} summary`).click();
  };
  const level = page.locator(id("thinking-level"));
  const hate = page.locator('[data-safety="HARM_CATEGORY_HATE_SPEECH"]');
  await edit();
  await level.selectOption("high");
  await hate.selectOption("BLOCK_ONLY_HIGH");
  await page.locator(id("provider-save")).click();
  await page.locator(id("edit-provider")).waitFor();
  await edit();
  await soon(() => level.inputValue()).toBe("high");
  await soon(() => hate.inputValue()).toBe("BLOCK_ONLY_HIGH");
  await level.selectOption("");
  await page.locator(id("provider-save")).click();
  await page.locator(id("edit-provider")).waitFor();
  await edit();
  await soon(() => level.inputValue()).toBe("");
  await soon(() => hate.inputValue()).toBe("BLOCK_ONLY_HIGH");
});

it("how long a provider is waited for is set within bounds, and is as usual again when emptied", async () => {
  const page = await open("/id/nas");
  const edit = async () => {
    await page.locator(id("edit-provider")).click();
    await page.locator(`${id("provider-options")} summary`).click();
  };
  const wait = page.locator(id("wait_seconds"));
  const save = page.locator(id("provider-save"));
  await edit();
  expect(await wait.getAttribute("placeholder")).toBe("300");
  expect(await page.locator(id("stall_seconds")).getAttribute("placeholder")).toBe("120");
  await wait.fill("86401");
  await says(page, `${id("provider-options")} [role=alert]`, "from 1 to 86,400");
  expect(await save.isDisabled()).toBe(true);
  await soon(() => barriers(page)).toEqual([]);
  for (const width of [1440, 640, 380]) {
    await page.setViewportSize({ width, height: 800 });
    await soon(() => tooWide(page)).toEqual([]);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await wait.fill("900");
  await save.click();
  await page.locator(id("edit-provider")).waitFor();
  await edit();
  await soon(() => wait.inputValue()).toBe("900");
  await soon(() => page.locator(id("stall_seconds")).inputValue()).toBe("");
  await wait.fill("");
  await save.click();
  await page.locator(id("edit-provider")).waitFor();
  await edit();
  await soon(() => wait.inputValue()).toBe("");
});
