// Markdown of models and notes to safe HTML, in blocks.
// Invariant: HTML in the source is shown as text, never run; links and buttons do nothing by themselves, the window
// listens for them (`data-copy`, `data-note`, `href`).
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens, type TokensList } from "marked";
import { highlight } from "./highlight";
import { citeExtension, escapeHtml, type Cite } from "./cite";

/** What rendering needs to know of the window. */
export interface MarkdownContext {
  readonly copyLabel: string;
  /** The note that a path names, if it names one. */
  readonly cite: Cite;
}

/** One block of a text; `key` stays the same while the text grows. */
export interface HtmlBlock {
  readonly key: number;
  readonly html: string;
  /** Lines of the source, from 1. */
  readonly startLine: number;
  readonly endLine: number;
}

const PURIFY = {
  ALLOWED_TAGS: (
    "p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del a table thead tbody tr th td " +
    "div span button sup sub mark"
  ).split(" "),
  ALLOWED_ATTR: ["href", "title", "class", "type", "start", "align", "aria-label", "tabindex"],
  ADD_ATTR: ["data-copy", "data-note", "role"],
  // Attributes that hold no address; all others must match the expression below.
  ADD_URI_SAFE_ATTR: ["data-copy", "data-note", "type", "start", "align", "tabindex"],
  ALLOW_DATA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
};

export class Markdown {
  readonly #marked: Marked;

  constructor(private readonly context: MarkdownContext) {
    this.#marked = new Marked({ gfm: true, breaks: false, async: false });
    this.#marked.use({ renderer: this.#renderer(), extensions: [citeExtension(context.cite)] });
  }

  /** All blocks of a finished text; references are resolved over the whole of it. */
  blocks(text: string, firstKey = 0, firstLine = 1): HtmlBlock[] {
    return this.#render(this.lex(text), firstKey, firstLine);
  }

  lex(text: string): TokensList {
    return this.#marked.lexer(normalised(text));
  }

  renderTokens(tokens: Token[], links: TokensList["links"], firstKey: number, firstLine: number): HtmlBlock[] {
    return this.#render(Object.assign([...tokens], { links }) as TokensList, firstKey, firstLine);
  }

  #render(tokens: TokensList, firstKey: number, firstLine: number): HtmlBlock[] {
    const out: HtmlBlock[] = [];
    let line = firstLine;
    for (const token of tokens) {
      const lines = token.raw.split("\n").length - 1;
      if (token.type !== "space" && token.type !== "def") {
        const one = Object.assign([token], { links: tokens.links }) as TokensList;
        const trailing = token.raw.length - token.raw.trimEnd().length;
        const own = token.raw.slice(0, token.raw.length - trailing).split("\n").length;
        out.push({
          key: firstKey + out.length,
          html: DOMPurify.sanitize(this.#marked.parser(one), PURIFY),
          startLine: line,
          endLine: line + own - 1,
        });
      }
      line += lines;
    }
    return out;
  }

  #renderer() {
    const { copyLabel } = this.context;
    return {
      html: ({ text }: Tokens.HTML | Tokens.Tag) => escapeHtml(text),
      image: ({ href, text }: Tokens.Image) => `<span class="image-name">${escapeHtml(text || href)}</span>`,
      checkbox: ({ checked }: Tokens.Checkbox) => `<span class="task">${checked ? "☑" : "☐"}</span> `,
      code: ({ text, lang }: Tokens.Code) => codeBlock(text, (lang ?? "").split(/\s/)[0] ?? "", copyLabel),
      table(this: { parser: { parseInline(tokens: Token[]): string } }, token: Tokens.Table) {
        const cell = (tag: string) => (cell: Tokens.TableCell) =>
          `<${tag}${cell.align ? ` align="${cell.align}"` : ""}>${this.parser.parseInline(cell.tokens)}</${tag}>`;
        const head = token.header.map(cell("th")).join("");
        const rows = token.rows.map((row) => `<tr>${row.map(cell("td")).join("")}</tr>`).join("");
        return `<div class="table" tabindex="0" role="group"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>`;
      },
    };
  }
}

function codeBlock(text: string, lang: string, copyLabel: string): string {
  return (
    `<div class="code"><div class="code-head"><span>${escapeHtml(lang)}</span>` +
    `<button type="button" class="quiet" data-copy="1">${escapeHtml(copyLabel)}</button></div>` +
    `<pre tabindex="0"><code>${highlight(text, lang)}</code></pre></div>`
  );
}

/** The lexer's tokens then stand for exactly the characters of the text. */
function normalised(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}

/** Rendering of a text that grows: all blocks but the last two are kept as they are. */
export class GrowingMarkdown {
  #frozen: HtmlBlock[] = [];
  #frozenText = "";
  #frozenLines = 0;

  constructor(private readonly markdown: Markdown) {}

  update(source: string): HtmlBlock[] {
    const text = normalised(source);
    if (!text.startsWith(this.#frozenText)) this.#reset();
    const tokens = this.markdown.lex(text.slice(this.#frozenText.length));
    this.#freeze(tokens);
    return [
      ...this.#frozen,
      ...this.markdown.renderTokens(tokens, tokens.links, this.#frozen.length, this.#frozenLines + 1),
    ];
  }

  /** How many tokens can't change any more, however the text goes on. */
  #settled(tokens: TokensList): number {
    const solid = tokens.map((token, index) => (token.type === "space" ? -1 : index)).filter((index) => index >= 0);
    // Lists and quotations go on over blank lines, so the last two blocks stay open.
    return solid.length > 2 ? (solid[solid.length - 2] ?? 0) : 0;
  }

  #freeze(tokens: TokensList): void {
    const count = this.#settled(tokens);
    if (count === 0) return;
    const settled = tokens.slice(0, count);
    const raw = settled.map((token) => token.raw).join("");
    const blocks = this.markdown.renderTokens(settled, tokens.links, this.#frozen.length, this.#frozenLines + 1);
    this.#frozen = [...this.#frozen, ...blocks];
    this.#frozenText += raw;
    this.#frozenLines += raw.split("\n").length - 1;
    // The caller renders what is left; the tokens that were frozen are cut away.
    tokens.splice(0, count);
  }

  #reset(): void {
    this.#frozen = [];
    this.#frozenText = "";
    this.#frozenLines = 0;
  }
}
