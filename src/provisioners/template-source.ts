// Reads template.yaml and the README next to it from the uploaded archive of a template version. They are at the root of the archive or in
// its only top folder. Used by the import job.
import { withArchive } from "./archive.ts";
import { type ArchiveEntry, ArchiveError } from "./archive-entry.ts";
import { MAX_YAML_BYTES } from "./yaml.ts";

const MANIFEST_NAMES = ["template.yaml", "template.yml"];
const MAX_README_BYTES = 1024 * 1024;

export type TemplateSource = { readonly file: string; readonly manifest: string; readonly readme: string };

/** Throws ArchiveError if there is no template.yaml, or if the archive is rejected. */
export const readTemplateSource = (path: string, mimetype: string): Promise<TemplateSource> =>
  withArchive(path, mimetype, async ({ entries }) => {
    const folder = findTopFolder(entries);
    const findInFolder = (name: string): ArchiveEntry | undefined =>
      entries.find((entry) => entry.name.toLowerCase() === folder.toLowerCase() + name);
    const manifests = MANIFEST_NAMES.map(findInFolder).filter((entry) => entry !== undefined);
    const [entry] = manifests;
    if (!entry) throw new ArchiveError("there is no template.yaml at the top of the archive, and no *.tf");
    if (manifests.length > 1) throw new ArchiveError("there are both a template.yaml and a template.yml");
    const readme = findInFolder("readme.md");
    return {
      file: entry.name.slice(folder.length),
      manifest: decodeText(await entry.read(MAX_YAML_BYTES), entry.name),
      readme: readme ? new TextDecoder().decode(await readme.read(MAX_README_BYTES)) : "",
    };
  });

/** Returns the folder with a trailing slash if all entries are in one folder; otherwise an empty string. */
export const findTopFolder = (entries: readonly ArchiveEntry[]): string => {
  const first = entries[0]?.name ?? "";
  const folder = first.slice(0, first.indexOf("/") + 1);
  return folder !== "" && entries.every(({ name }) => name.startsWith(folder)) ? folder : "";
};

export const decodeText = (bytes: Uint8Array, name: string): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ArchiveError(`${name} is not UTF-8 text`);
  }
};
