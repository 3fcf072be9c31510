// Opens the note that a citation names.
import type { Lectern } from "../../stores/lectern.svelte";
import { noteNamed, type CitedNote } from "../../text/cite";

/** The server that has the note: the one of the call, the one whose result named it, else the first vault's. */
export function openNote(
  lectern: Lectern,
  notes: ReadonlyMap<string, CitedNote>,
  tool: string | null,
  path: string,
  quote: string | null,
): void {
  const known = noteNamed(notes, path);
  const ofTool = tool === null ? null : (lectern.desk.tools.get(tool)?.server.id ?? null);
  const vaults = new Set(lectern.desk.vaults.map((vault) => vault.server));
  const wanted = [ofTool, known?.server ?? null].find((server) => server !== null && vaults.has(server));
  const server = wanted ?? lectern.desk.vaults[0]?.server ?? ofTool ?? known?.server;
  if (!server) return;
  const source = known?.sources[0];
  lectern.floating.note = {
    server,
    path: known?.path ?? path,
    heading: source?.heading ?? null,
    startLine: source?.start_line ?? null,
    endLine: source?.end_line ?? null,
    quote,
  };
}
