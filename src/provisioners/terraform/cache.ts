// What an import has found and a build shall find again without any registry: modules from elsewhere and the lock file (facts/terraform
// 1.13, 1.15), as a tar archive.
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Session } from "./session.ts";

/** Bytes of all modules together; what does not fit is fetched again at each build. */
const MODULES_LIMIT = 20 * 1024 * 1024;
const MODULES = ".terraform/modules";
const LOCK = ".terraform.lock.hcl";

export type Packed = { readonly archive: Uint8Array<ArrayBuffer>; readonly leftOut: readonly string[] };

/** Undefined when there is nothing to keep. */
export const packCache = async ({ work }: Session): Promise<Packed | undefined> => {
  const files: Record<string, Uint8Array> = {};
  const leftOut: string[] = [];
  const lock = join(work, LOCK);
  if (existsSync(lock)) files[LOCK] = readFileSync(lock);
  let left = MODULES_LIMIT;
  for (const name of readdirSyncOr(join(work, MODULES))) {
    const inside = filesBelow(work, `${MODULES}/${name}`);
    const size = inside.reduce((sum, path) => sum + lstatSync(join(work, path)).size, 0);
    if (size > left) {
      leftOut.push(name);
      continue;
    }
    left -= size;
    for (const path of inside) files[path] = readFileSync(join(work, path));
  }
  if (Object.keys(files).length === 0) return undefined;
  return { archive: new Uint8Array(await new Bun.Archive(files).bytes()), leftOut };
};

const filesBelow = (work: string, path: string): string[] => {
  const found = lstatSync(join(work, path), { throwIfNoEntry: false });
  if (found?.isFile()) return [path];
  if (!found?.isDirectory()) return [];
  return readdirSyncOr(join(work, path))
    .filter((name) => name !== ".git")
    .flatMap((name) => filesBelow(work, `${path}/${name}`));
};

const readdirSyncOr = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).sort() : []);

/** Bytes of one file that is looked through. */
const READ_LIMIT = 1024 * 1024;

/** Which secrets of the owner the template and its modules speak of, anywhere in their files (facts/terraform 2.1). */
export const needsOf = ({ work }: Session): string[] => {
  const files = [...readdirSyncOr(work).filter((name) => name !== ".terraform"), MODULES];
  const found = new Set<string>();
  for (const path of files.flatMap((name) => filesBelow(work, name))) {
    if (lstatSync(join(work, path)).size > READ_LIMIT) continue;
    const text = readFileSync(join(work, path), "latin1");
    if (/session_token/i.test(text)) found.add("session_token");
    if (/ssh_(?:private|public)_key/i.test(text)) found.add("ssh_key");
  }
  return [...found].sort();
};
