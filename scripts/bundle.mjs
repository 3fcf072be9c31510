// The part of Tauri's configuration that names what lies beside the window's executable: node bundle.mjs LECTERN LIBRARIES
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const [lectern, libraries] = process.argv.slice(2);
const files = { "/usr/bin/lectern": lectern };

function add(folder, place) {
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) add(path, `${place}/${name}`);
    else files[`${place}/${name}`] = path;
  }
}

add(libraries, "/usr/lib/lectern");
console.log(JSON.stringify({ bundle: { linux: { deb: { files }, rpm: { files } } } }, null, 2));
