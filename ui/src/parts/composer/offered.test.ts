import { expect, it } from "vitest";
import { blanksOf, filledIn, labelOf, placeOf, readable, searchedOf, variables, type Offered } from "./offered";

const resource = { uri: "note:///a.md", name: "a.md", title: null, description: null, mime: null, size: null };
const template = {
  uri_template: "demo://{type}/{+path}{?q*,most:3}",
  name: "t",
  title: null,
  description: null,
  mime: null,
};

it("names the variables of a template", () => {
  expect(variables(template.uri_template)).toEqual(["type", "path", "q", "most"]);
  expect(variables("demo://none")).toEqual([]);
  expect(variables("demo://{a}/{a}")).toEqual(["a"]);
});

it("fills a template in as RFC 6570 says", () => {
  expect(filledIn("note:///{+path}", { path: "Travel/Lyon trip.md" })).toBe("note:///Travel/Lyon%20trip.md");
  expect(filledIn("demo://text/{id}{?q}", { id: "a/b", q: "x y" })).toBe("demo://text/a%2Fb?q=x%20y");
});

it("puts resources before templates", () => {
  const views = [
    { server: "a", resources: [], templates: [template] },
    { server: "b", resources: [resource], templates: [] },
  ];
  expect(readable(views).map(({ kind, server }) => `${kind} ${server}`)).toEqual(["resource b", "template a"]);
});

it("hides nothing of a name, and is found by server and address", () => {
  const hidden: Offered = { kind: "resource", server: "b", resource: { ...resource, title: "a\u202eb" } };
  expect(labelOf(hidden)).toBe("a⟦U+202E⟧b");
  expect(searchedOf(hidden)).toContain("b:note:///a.md");
});

it("asks for what a prompt takes", () => {
  const prompt = {
    name: "p",
    title: null,
    description: null,
    arguments: [{ name: "city", title: "City", description: "Where", required: true }],
  };
  expect(blanksOf({ kind: "prompt", server: "a", prompt })).toEqual([
    { name: "city", label: "City", about: "Where", required: true },
  ]);
});

it("says where it is in a way that people read", () => {
  const uri = "note:///Association/Jardin%20partag%C3%A9.md";
  const named: Offered = {
    kind: "resource",
    server: "notes",
    resource: { ...resource, uri, name: "Association/Jardin partagé.md", title: "Jardin" },
  };
  expect(placeOf(named)).toBe("notes · Association/Jardin partagé.md");
  expect(placeOf({ ...named, resource: { ...resource, uri } })).toBe("notes · note:///Association/Jardin partagé.md");
  expect(placeOf({ ...named, resource: { ...resource, uri: "x://%zz" } })).toBe("notes · x://%zz");
});
