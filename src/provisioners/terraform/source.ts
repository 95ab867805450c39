// Recognising a Terraform template in an upload, and what is read of its files before any program runs.
import { withArchive } from "../archive.ts";
import { ArchiveError } from "../archive-entry.ts";
import { topFolder } from "../template-source.ts";
import { MODULE_VARIABLES, SNAPSHOT_FOLDER, SNAPSHOT_NAME } from "./snapshot-output.ts";
import {
  type DeclaredVariable,
  declaredOutputs,
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
  /** Its module for snapshots; undefined without one. `problem` says why it cannot be used. */
  readonly snapshot_module: { readonly problem: string | undefined } | undefined;
};

const MANIFESTS = new Set(["template.yaml", "template.yml"]);

/** Undefined for an upload without files of Terraform at its top, or with a template.yaml there. Throws ArchiveError. */
export const readTerraformSource = ({ path, mimetype }: TemplateArchive): Promise<TerraformSource | undefined> =>
  withArchive(path, mimetype, async ({ entries }) => {
    const top = topFolder(entries);
    const all = entries.map((entry) => ({ entry, name: entry.name.slice(top.length) }));
    const filesIn = (folder: string) =>
      all
        .filter(({ name }) => name.startsWith(folder) && !name.slice(folder.length).includes("/"))
        .map(({ entry, name }) => ({ entry, name: name.slice(folder.length) }));
    const atTop = filesIn("");
    if (atTop.some(({ name }) => MANIFESTS.has(name.toLowerCase()))) return undefined;
    const read = async (fits: (name: string) => boolean, from = atTop): Promise<TemplateFile[]> => {
      const files: TemplateFile[] = [];
      for (const { entry, name } of from) {
        if (fits(name)) files.push({ name, text: decodeText(await entry.read(FILE_LIMIT), name) });
      }
      return files;
    };
    const files = await read(isTemplateFile);
    if (files.length === 0) return undefined;
    const [readme] = await read((name) => name.toLowerCase() === "readme.md");
    const ofModule = await read(isTemplateFile, filesIn(`${SNAPSHOT_FOLDER}/`));
    const declared = declaredVariables(files);
    const hasModule = ofModule.length > 0;
    return {
      readme: readme?.text ?? "",
      // That of snapshots is given by the server, not by people.
      variables: hasModule ? declared.filter(({ name }) => name !== SNAPSHOT_NAME) : declared,
      snapshot_module: hasModule ? { problem: findModuleProblem(files, ofModule) } : undefined,
      given: namesGivenIn(await read(isValuesFile)),
      files: files.length,
    };
  });

/** Why a module cannot copy anything, for the template's author. */
const findModuleProblem = (template: readonly TemplateFile[], module: readonly TemplateFile[]): string | undefined => {
  const variables = declaredVariables(template);
  const own = variables.find(({ name }) => name === SNAPSHOT_NAME);
  const asked = declaredVariables(module);
  const known = new Set([...variables.map(({ name }) => name), ...MODULE_VARIABLES]);
  const strange = asked.find((one) => one.default === undefined && !known.has(one.name));
  const lacks = (what: string, where: string): string => `The folder ${SNAPSHOT_FOLDER} needs ${what} in ${where}.`;
  if (!declaredOutputs(template).has(SNAPSHOT_NAME)) return lacks(`an output "${SNAPSHOT_NAME}"`, "the template");
  if (own?.default === undefined) return lacks(`a variable "${SNAPSHOT_NAME}" with the default null`, "the template");
  if (!asked.some(({ name }) => name === SNAPSHOT_NAME)) return lacks(`a variable "${SNAPSHOT_NAME}"`, "its own files");
  if (!declaredOutputs(module).has(SNAPSHOT_NAME)) return lacks(`an output "${SNAPSHOT_NAME}"`, "its own files");
  if (strange)
    return `The variable "${strange.name}" of ${SNAPSHOT_FOLDER} needs a default, or a variable of the same name in the template.`;
  return undefined;
};

const decodeText = (bytes: Uint8Array, name: string): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ArchiveError(`${name} is not UTF-8 text`);
  }
};
