// Files of the clipboard on their way to the shell.
// Invariant: one that can't be used does not keep back the others.
import type { Enclosures, Problem } from "../../bindings/app";
import type { Host } from "../../host/host";
import { problemOf } from "../../stores/desk.svelte";

export async function pasted(host: Host, files: readonly File[]): Promise<Enclosures> {
  const out: { taken: Enclosures["taken"]; refused: Problem[] } = { taken: [], refused: [] };
  for (const file of files) {
    try {
      // What was copied from a screen is called `image.png` by every browser.
      const name = file.name === "image.png" ? null : file.name;
      out.taken.push(await host.enclose({ mime: file.type, base64: await base64(file) }, name));
    } catch (error) {
      out.refused.push(problemOf(error));
    }
  }
  return out;
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error ?? new Error(`read ${file.name}`));
    reader.onload = () => {
      const url = typeof reader.result === "string" ? reader.result : "";
      resolve(url.slice(url.indexOf(",") + 1));
    };
    reader.readAsDataURL(file);
  });
}
