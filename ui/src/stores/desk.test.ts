import { expect, it } from "vitest";
import type { AppNews } from "../bindings/app";
import { download } from "../host/fake/models";
import { appView } from "../host/fake/view";
import type { Host } from "../host/host";
import { Desk } from "./desk.svelte";

it("news that overtake the view are not lost", async () => {
  const view = appView({});
  const [first] = view.servers;
  if (!first) throw new Error("the fake host has servers");
  let tell: (news: AppNews) => void = () => {};
  const host = {
    subscribe: async (onNews: (news: AppNews) => void) => void (tell = onNews),
    appView: async () => {
      // The view was read before this happened, and arrives after it was told.
      tell({ type: "server_changed", server: { ...first, state: { type: "needs_approval" } } });
      return view;
    },
    conversations: async () => [],
  };
  const desk = new Desk(host as unknown as Host);
  await desk.load();
  expect(desk.servers[0]?.state.type).toBe("needs_approval");
});

it("a download that ends is told once, and one that had ended before is not", async () => {
  const done = { type: "done" as const, model: "smollm3" };
  const before = download({ id: "old", state: done });
  let tell: (news: AppNews) => void = () => {};
  const host = {
    subscribe: async (onNews: (news: AppNews) => void) => void (tell = onNews),
    appView: async () => appView({ downloads: [before, download({})] }),
    conversations: async () => [],
  };
  const desk = new Desk(host as unknown as Host);
  const ended: string[] = [];
  desk.onDownloaded = ({ id }) => ended.push(id);
  await desk.load();
  tell({ type: "download_changed", download: download({ done: 900_000_000 }) });
  tell({ type: "download_changed", download: download({ state: done }) });
  tell({ type: "downloads_changed", downloads: [before, download({ state: done })] });
  expect(ended).toEqual(["d1"]);
  expect(desk.downloads.map(({ state }) => state.type)).toEqual(["done", "done"]);
  // What is new on the list has not ended here.
  tell({ type: "downloads_changed", downloads: [download({ id: "new", state: done })] });
  expect(ended).toEqual(["d1"]);
});
