import { describe, expect, it } from "vitest";
import { LONG_ANSWER, PLAIN_ANSWER } from "../host/fake/texts";
import { noteNamed } from "./cite";
import { GrowingMarkdown, Markdown } from "./markdown";

const PATH = "Travel/2019 Norway by rail.md";
const markdown = (paths: string[] = []) => new Markdown({ copyLabel: "Copy", cite: { paths } });
const html = (text: string, paths: string[] = []) =>
  markdown(paths)
    .blocks(text)
    .map((block) => block.html)
    .join("\n");

function dom(text: string, paths: string[] = []): HTMLElement {
  const root = document.createElement("div");
  root.innerHTML = html(text, paths);
  return root;
}

describe("safety", () => {
  const hostile = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "[x](javascript:alert(1))",
    "[x](  JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    '<a href="javascript:alert(1)">x</a>',
    '<svg><animate onbegin="alert(1)"></svg>',
    "```html\n<script>alert(1)</script>\n```",
    "![x](javascript:alert(1))",
    '| <b onclick="x()">a</b> |\n|---|\n| <iframe src="https://example.org"></iframe> |',
    'From "><img src=x onerror=alert(1)>.md:',
    '[x](https://example.org "\\"onmouseover=alert(1)")',
    "<style>body{display:none}</style>",
    '<form action="https://example.org"><input name=a></form>',
  ];
  it.each(hostile)("runs nothing of %s", (text) => {
    const root = dom(text);
    expect(root.querySelectorAll("script, iframe, object, embed, style, svg, img, form, meta, link")).toHaveLength(0);
    for (const element of root.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on/i);
        if (name === "href") expect(value).not.toMatch(/^\s*(javascript|data|vbscript)/i);
      }
    }
  });

  it("shows HTML as the text that it is", () => {
    expect(dom("a <b>bold</b> claim").textContent?.trim()).toBe("a <b>bold</b> claim");
  });

  it("never loads a remote picture", () => {
    const root = dom("![the boiler](https://example.org/boiler.png)");
    expect(root.querySelector("img")).toBeNull();
    expect(root.textContent).toContain("the boiler");
  });
});

describe("citations", () => {
  const noted = (text: string, paths: string[] = []) =>
    [...dom(text, paths).querySelectorAll<HTMLElement>("[data-note]")].map((one) => one.dataset["note"]);

  it("finds the note before a quotation, spaces and all", () => {
    expect(noted(PLAIN_ANSWER)).toEqual([PATH]);
    expect(dom(PLAIN_ANSWER).textContent).toContain(`From ${PATH}:`);
  });
  it("finds `PATH says:` and lists of paths", () => {
    expect(noted("Car sharing.md says:\n\n> x")).toEqual(["Car sharing.md"]);
    expect(noted("- Recipes/Rye sourdough.md\n- 菜谱/包饺子.md")).toEqual([
      "Recipes/Rye sourdough.md",
      "菜谱/包饺子.md",
    ]);
  });
  it("finds known paths anywhere, also as code", () => {
    expect(noted(`I looked into ${PATH} and \`${PATH}\`.`, [PATH])).toEqual([PATH, PATH]);
  });
  it("takes the longest of the known paths", () => {
    expect(noted("see A/Note.md.md", ["A/Note.md", "A/Note.md.md"])).toEqual(["A/Note.md.md"]);
  });
  it("leaves other text alone", () => {
    expect(noted("A file called readme.md is usual, and so is x.md elsewhere.")).toEqual([]);
    expect(noted("From here on: nothing.")).toEqual([]);
  });
  it("keeps quotes in paths", () => {
    expect(noted('From Recipes/Grandmother\'s "best" <biscuits>.md:')).toEqual([
      'Recipes/Grandmother\'s "best" <biscuits>.md',
    ]);
  });
});

describe("growing text", () => {
  it.each([LONG_ANSWER, PLAIN_ANSWER, "a\r\nb\r\n\r\n- c\r\n\r\n- d\r\n\r\ne\r\n\r\nf"])(
    "ends as the whole text does, whatever the pieces",
    (text) => {
      for (const size of text.length > 1000 ? [61, 17] : [1, 7]) {
        const growing = new GrowingMarkdown(markdown());
        let blocks = growing.update("");
        for (let end = size; end < text.length + size; end += size) blocks = growing.update(text.slice(0, end));
        expect(blocks).toEqual(markdown().blocks(text));
      }
    },
  );

  it("does not draw frozen blocks again", () => {
    const growing = new GrowingMarkdown(markdown());
    const before = growing.update("one\n\ntwo\n\nthree\n\nfour");
    const after = growing.update("one\n\ntwo\n\nthree\n\nfour and more");
    expect(after[0]).toBe(before[0]);
    expect(after[1]).toBe(before[1]);
  });

  it("starts over when the text is another", () => {
    const growing = new GrowingMarkdown(markdown());
    growing.update("one\n\ntwo\n\nthree\n\nfour");
    expect(growing.update("else")).toEqual(markdown().blocks("else"));
  });
});

it("knows the lines of its blocks", () => {
  const blocks = markdown().blocks("# A\n\ntext\nmore\n\n- x\n- y\n");
  expect(blocks.map(({ startLine, endLine }) => [startLine, endLine])).toEqual([
    [1, 1],
    [3, 4],
    [6, 7],
  ]);
});

it("finds the note that is named without its folder, if there is only one", () => {
  const notes = new Map(
    ["Recipes/Rye.md", "A/Same.md", "B/Same.md"].map((path) => [path, { path, server: null, sources: [] }]),
  );
  expect(noteNamed(notes, "Recipes/Rye.md")?.path).toBe("Recipes/Rye.md");
  expect(noteNamed(notes, "Rye.md")?.path).toBe("Recipes/Rye.md");
  expect(noteNamed(notes, "ye.md")).toBeNull();
  expect(noteNamed(notes, "Same.md")).toBeNull();
});
