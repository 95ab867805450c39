// Packs a template's folder for upload. Refuses a folder without a template.yaml or *.tf. Leaves out version control, dependencies,
// Terraform's generated files (states contain secrets), and links that lead out of the folder or form a cycle.
import { readdirSync, readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { join, sep } from "node:path";
import { VerbFailure } from "../../failure.ts";

const EXCLUDED_NAMES = new Set([".git", ".hg", ".svn", "node_modules", ".DS_Store"]);
const MANIFEST_NAMES = ["template.yaml", "template.yml"];
/** Terraform source files; its generated files do not belong to a template. */
const TERRAFORM_PATTERN = /^[^/]+\.(?:tf|tofu)(?:\.json)?$/;
const GENERATED_PATTERN = /^(?:\.terraform|.*\.tfstate(?:\..*)?|\.terraform\.tfstate\.lock\.info|.*\.tfplan)$/;
/** The server's upload limit, checked before anything is read into memory. */
const MAX_UPLOAD_BYTES = 100 * 1024 * 1024;

export type PackedFolder = { archive: Uint8Array<ArrayBuffer>; fileCount: number; skippedPaths: readonly string[] };

/** Resolves a path through links; undefined if the target is outside the template, a parent folder, or missing. */
const resolveEntry = (
  path: string,
  root: string,
  parents: readonly string[],
): { real: string; stat: Stats } | undefined => {
  let real: string;
  try {
    real = realpathSync.native(path);
  } catch (error) {
    if (!/^(ENOENT|ELOOP)$/.test(String((error as { code?: unknown }).code))) throw error;
    return undefined;
  }
  const segments = real.startsWith(root + sep) ? real.slice(root.length + 1).split(sep) : undefined;
  const isExcluded = segments?.some((name) => EXCLUDED_NAMES.has(name) || GENERATED_PATTERN.test(name)) ?? true;
  return isExcluded || parents.includes(real) ? undefined : { real, stat: statSync(real) };
};

/** Throws VerbFailure with a message about the folder's problem. */
export const packFolder = async (folder: string): Promise<PackedFolder> => {
  const files: Record<string, Uint8Array> = {};
  const skippedPaths: string[] = [];
  let bytes = 0;
  /** `parents` are the real paths of the parent folders. */
  const walk = (subfolder: string, root: string, parents: readonly string[]): void => {
    for (const name of readdirSync(join(folder, subfolder)).sort()) {
      const path = subfolder === "" ? name : `${subfolder}/${name}`;
      if (EXCLUDED_NAMES.has(name) || GENERATED_PATTERN.test(name)) continue;
      const found = resolveEntry(join(folder, path), root, parents);
      if (found?.stat.isDirectory()) walk(path, root, [...parents, found.real]);
      else if (!found?.stat.isFile()) skippedPaths.push(path);
      else {
        bytes += found.stat.size;
        if (bytes > MAX_UPLOAD_BYTES)
          throw new VerbFailure(`${folder} holds more than ${MAX_UPLOAD_BYTES / 1024 / 1024} MiB`);
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
  const isTemplate =
    MANIFEST_NAMES.some((name) => name in files) || Object.keys(files).some((path) => TERRAFORM_PATTERN.test(path));
  if (!isTemplate) throw new VerbFailure(`no template.yaml in ${folder}, and no *.tf`);
  return {
    archive: new Uint8Array(await new Bun.Archive(files).bytes()),
    fileCount: Object.keys(files).length,
    skippedPaths,
  };
};
