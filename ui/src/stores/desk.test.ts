import { expect, it } from "vitest";
import type { AppNews } from "../bindings/app";
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
