// What a person should know of an address before it is opened.
// Invariant: pure; nothing is fetched.

export interface AddressParts {
  /** The address as its server wrote it, in three pieces. */
  readonly before: string;
  readonly domain: string;
  readonly after: string;
}

export type AddressWarning = "unreadable" | "scheme" | "plain" | "punycode" | "user" | "hidden";

export interface Address {
  /** What would be opened; null when it must not be. */
  readonly href: string | null;
  readonly parts: AddressParts;
  readonly warnings: readonly AddressWarning[];
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

export function readAddress(text: string): Address {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return { href: null, parts: { before: "", domain: "", after: text }, warnings: ["unreadable"] };
  }
  const warnings: AddressWarning[] = [];
  const web = url.protocol === "https:" || url.protocol === "http:";
  if (!web) warnings.push("scheme");
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname)) warnings.push("plain");
  if (url.hostname.split(".").some((label) => label.startsWith("xn--"))) warnings.push("punycode");
  if (url.username !== "" || url.password !== "") warnings.push("user");
  // Shown as it is opened: what a browser makes of the address, not what a server would like us to read.
  const authority = url.href.indexOf("//") + 2;
  const end = url.href.slice(authority).search(/[/?#]|$/) + authority;
  const at = url.href.slice(authority, end).lastIndexOf("@") + 1 + authority;
  const cut = url.hostname === "" ? url.href.length : at;
  return {
    href: web ? url.href : null,
    parts: {
      before: url.href.slice(0, cut),
      domain: url.href.slice(cut, cut + url.hostname.length),
      after: url.href.slice(cut + url.hostname.length),
    },
    warnings,
  };
}
