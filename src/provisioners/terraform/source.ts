// Recognising a Terraform template in an upload, and what is read of its files before any program runs.
import { withArchive } from "../archive.ts";
import { ArchiveError } from "../archive-entry.ts";
import { topFolder } from "../template-source.ts";
import {
  type DeclaredVariable,
  declaredVariables,
  isTemplateFile,
  isValuesFile,
  namesGivenIn,
  type TemplateFile,
} from "./variables.ts";
import type { TemplateArchive } from "./work.ts";

/** Bytes of one file of HCL, and of a README. */
const FILE_LIMIT = 4 * 1024 * 1024;

export type TerraformSource = {
  readonly readme: string;
  readonly variables: readonly DeclaredVariable[];
  /** Names of variables that a file of the template gives a value. */
  readonly given: ReadonlySet<string>;
  readonly files: number;
};

const MANIFESTS = new Set(["template.yaml", "template.yml"]);

/** Undefined for an upload without files of Terraform at its top, or with a template.yaml there. Throws ArchiveError. */
export const readTerraformSource = ({ path, mimetype }: TemplateArchive): Promise<TerraformSource | undefined> =>
  withArchive(path, mimetype, async ({ entries }) => {
    const top = topFolder(entries);
    const atTop = entries
      .map((entry) => ({ entry, name: entry.name.slice(top.length) }))
      .filter(({ name }) => !name.includes("/"));
    if (atTop.some(({ name }) => MANIFESTS.has(name.toLowerCase()))) return undefined;
    const read = async (fits: (name: string) => boolean): Promise<TemplateFile[]> => {
      const files: TemplateFile[] = [];
      for (const { entry, name } of atTop) {
        if (fits(name)) files.push({ name, text: decodeText(await entry.read(FILE_LIMIT), name) });
      }
      return files;
    };
    const files = await read(isTemplateFile);
    if (files.length === 0) return undefined;
    const [readme] = await read((name) => name.toLowerCase() === "readme.md");
    return {
      readme: readme?.text ?? "",
      variables: declaredVariables(files),
      given: namesGivenIn(await read(isValuesFile)),
      files: files.length,
    };
  });

const decodeText = (bytes: Uint8Array, name: string): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ArchiveError(`${name} is not UTF-8 text`);
  }
};
