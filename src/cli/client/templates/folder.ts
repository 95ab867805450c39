// A template's folder as the archive that is uploaded. Refuses a folder without a template.yaml or *.tf, and leaves out what belongs to version
// control, dependencies, what Terraform has made there (states hold secrets) and links that lead out of the folder or around in a circle.
import { readdirSync, readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { join, sep } from "node:path";
import { VerbFailure } from "../../failure.ts";

const LEFT_OUT = new Set([".git", ".hg", ".svn", "node_modules", ".DS_Store"]);
const NAMES = ["template.yaml", "template.yml"];
/** Terraform's; nothing of what it has made here belongs to a template. */
const TERRAFORM = /^[^/]+\.(?:tf|tofu)(?:\.json)?$/;
const MADE_HERE = /^(?:\.terraform|.*\.tfstate(?:\..*)?|\.terraform\.tfstate\.lock\.info|.*\.tfplan)$/;
/** What the server takes at most; said before anything is read into memory. */
const LIMIT = 100 * 1024 * 1024;

export type Folder = { archive: Uint8Array<ArrayBuffer>; files: number; leftOut: readonly string[] };

/** What a path leads to, through links too; undefined where that is outside of the template, a folder above it, or not there. */
const follow = (path: string, root: string, above: readonly string[]): { real: string; stat: Stats } | undefined => {
  let real: string;
  try {
    real = realpathSync.native(path);
  } catch (error) {
    if (!/^(ENOENT|ELOOP)$/.test(String((error as { code?: unknown }).code))) throw error;
    return undefined;
  }
  const inside = real.startsWith(root + sep) ? real.slice(root.length + 1).split(sep) : undefined;
  const isLeftOut = inside?.some((name) => LEFT_OUT.has(name) || MADE_HERE.test(name)) ?? true;
  return isLeftOut || above.includes(real) ? undefined : { real, stat: statSync(real) };
};

/** Throws VerbFailure in words about what is wrong with the folder. */
export const folderArchive = async (folder: string): Promise<Folder> => {
  const files: Record<string, Uint8Array> = {};
  const leftOut: string[] = [];
  let bytes = 0;
  /** `above`: the folders that lead here, without links. */
  const walk = (below: string, root: string, above: readonly string[]): void => {
    for (const name of readdirSync(join(folder, below)).sort()) {
      const path = below === "" ? name : `${below}/${name}`;
      if (LEFT_OUT.has(name) || MADE_HERE.test(name)) continue;
      const found = follow(join(folder, path), root, above);
      if (found?.stat.isDirectory()) walk(path, root, [...above, found.real]);
      else if (!found?.stat.isFile()) leftOut.push(path);
      else {
        bytes += found.stat.size;
        if (bytes > LIMIT) throw new VerbFailure(`${folder} holds more than ${LIMIT / 1024 / 1024} MiB`);
        files[path] = readFileSync(join(folder, path));
      }
    }
  };
  try {
    const root = realpathSync.native(folder);
    walk("", root, [root]);
  } catch (error) {
    if (error instanceof VerbFailure) throw error;
    throw new VerbFailure(`${folder} cannot be read: ${(error as Error).message}`);
  }
  const isTemplate = NAMES.some((name) => name in files) || Object.keys(files).some((path) => TERRAFORM.test(path));
  if (!isTemplate) throw new VerbFailure(`no template.yaml in ${folder}, and no *.tf`);
  return { archive: new Uint8Array(await new Bun.Archive(files).bytes()), files: Object.keys(files).length, leftOut };
};
