// What servers offer, as entries of the composer's menus and as forms to fill.
// Invariant: pure; all names are servers' text, made visible before they are shown.
import { parseTemplate } from "url-template";
import type {
  CompletionRequest,
  PromptsView,
  PromptView,
  ResourcesView,
  ResourceView,
  TemplateView,
} from "../../bindings/app";
import { visible } from "../../text/visible";

export type Offered =
  | { readonly kind: "resource"; readonly server: string; readonly resource: ResourceView }
  | { readonly kind: "template"; readonly server: string; readonly template: TemplateView }
  | { readonly kind: "prompt"; readonly server: string; readonly prompt: PromptView };

/** What a person is asked before it can be taken along. */
export interface Blank {
  readonly name: string;
  readonly label: string;
  readonly about: string | null;
  readonly required: boolean;
}

/** Single resources first: they need no more words. */
export function readable(views: readonly ResourcesView[]): Offered[] {
  return [
    ...views.flatMap(({ server, resources }) =>
      resources.map((resource): Offered => ({ kind: "resource", server, resource })),
    ),
    ...views.flatMap(({ server, templates }) =>
      templates.map((template): Offered => ({ kind: "template", server, template })),
    ),
  ];
}

export function runnable(views: readonly PromptsView[]): Offered[] {
  return views.flatMap(({ server, prompts }) => prompts.map((prompt): Offered => ({ kind: "prompt", server, prompt })));
}

/** The name as a person reads it. */
export function labelOf(offered: Offered): string {
  const of = entry(offered);
  return visible(of.title || of.name || addressOf(offered));
}

/** What tells it from others of the same name. */
export function addressOf(offered: Offered): string {
  switch (offered.kind) {
    case "resource":
      return visible(offered.resource.uri);
    case "template":
      return visible(offered.template.uri_template);
    case "prompt":
      return visible(`/${offered.server}:${offered.prompt.name}`);
  }
}

/** Where it is, short: a server's own name where it has one beside its title, else the address, readable. */
export function placeOf(offered: Offered): string {
  if (offered.kind === "prompt") return addressOf(offered);
  const { name, title } = entry(offered);
  const where =
    title && name && title !== name && offered.kind === "resource" ? visible(name) : readableAddress(offered);
  return `${offered.server} · ${where}`;
}

function readableAddress(offered: Offered): string {
  try {
    return visible(decodeURI(addressOf(offered)));
  } catch {
    return addressOf(offered);
  }
}

/** All that a search may find it by. */
export function searchedOf(offered: Offered): string {
  const of = entry(offered);
  return [labelOf(offered), of.name, `${offered.server}:${addressOf(offered)}`, `${offered.server}:${of.name}`].join(
    " ",
  );
}

export function aboutOf(offered: Offered): string | null {
  const text = entry(offered).description;
  return text ? visible(text) : null;
}

function entry(offered: Offered): ResourceView | TemplateView | PromptView {
  switch (offered.kind) {
    case "resource":
      return offered.resource;
    case "template":
      return offered.template;
    case "prompt":
      return offered.prompt;
  }
}

export function blanksOf(offered: Offered): readonly Blank[] {
  switch (offered.kind) {
    case "resource":
      return [];
    case "template":
      return variables(offered.template.uri_template).map((name) => ({
        name,
        label: visible(name),
        about: null,
        required: true,
      }));
    case "prompt":
      return offered.prompt.arguments.map(({ name, title, description, required }) => ({
        name,
        label: visible(title || name),
        about: description ? visible(description) : null,
        required,
      }));
  }
}

/** The names in a URI template (RFC 6570), each once. */
export function variables(template: string): readonly string[] {
  const found = [...template.matchAll(/\{[+#./;?&]?([^{}]+)\}/g)].flatMap((match) => (match[1] ?? "").split(","));
  return [...new Set(found.map((name) => name.trim().replace(/(\*|:\d+)$/, "")))].filter((name) => name !== "");
}

export function filledIn(template: string, values: Readonly<Record<string, string>>): string {
  return parseTemplate(template).expand({ ...values });
}

export function completionOf(
  offered: Offered,
  argument: string,
  typed: string,
  known: Readonly<Record<string, string>>,
): CompletionRequest {
  const prompt = offered.kind === "prompt" ? offered.prompt.name : null;
  const template = offered.kind === "template" ? offered.template.uri_template : null;
  return { server: offered.server, prompt, template, argument, typed, known };
}
