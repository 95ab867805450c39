// Recognizes a Terraform template in an upload, and reads its files before any program runs.
import { withArchive } from "../archive.ts";
import { decodeText, findTopFolder } from "../template-source.ts";
import { MODULE_VARIABLES, SNAPSHOT_FOLDER, SNAPSHOT_NAME } from "./snapshot-output.ts";
import {
  type DeclaredVariable,
  isTemplateFile,
  isValuesFile,
  listDeclaredOutputs,
  parseAssignedNames,
  parseDeclaredVariables,
  type TemplateFile,
} from "./variables.ts";
import type { TemplateArchive } from "./work.ts";

/** Maximum bytes of an HCL file, and of a README. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;

export type TerraformSource = {
  readonly readme: string;
  readonly variables: readonly DeclaredVariable[];
  /** Names of variables with a value in a file of the template. */
  readonly given: ReadonlySet<string>;
  readonly files: number;
  /** The template's snapshot module; undefined without one. `problem`: why it cannot be used. */
  readonly snapshot_module: { readonly problem: string | undefined } | undefined;
};

const MANIFEST_NAMES = new Set(["template.yaml", "template.yml"]);

/**
 * Returns undefined for an upload that has no Terraform files in its top folder, or that has a template.yaml there. Throws ArchiveError.
 */
export const readTerraformSource = ({ path, mimetype }: TemplateArchive): Promise<TerraformSource | undefined> =>
  withArchive(path, mimetype, async ({ entries }) => {
    const top = findTopFolder(entries);
    const listFilesIn = (folder: string) =>
      entries
        .filter(({ name }) => name.startsWith(folder))
        .map((entry) => ({ entry, name: entry.name.slice(folder.length) }))
        .filter(({ name }) => !name.includes("/"));
    const topFiles = listFilesIn(top);
    if (topFiles.some(({ name }) => MANIFEST_NAMES.has(name.toLowerCase()))) return undefined;
    const read = async (matches: (name: string) => boolean, from = topFiles): Promise<TemplateFile[]> => {
      const files: TemplateFile[] = [];
      for (const { entry, name } of from) {
        if (matches(name)) files.push({ name, text: decodeText(await entry.read(MAX_FILE_BYTES), name) });
      }
      return files;
    };
    const files = await read(isTemplateFile);
    if (files.length === 0) return undefined;
    const [readme] = await read((name) => name.toLowerCase() === "readme.md");
    const moduleFiles = await read(isTemplateFile, listFilesIn(`${top}${SNAPSHOT_FOLDER}/`));
    const declared = parseDeclaredVariables(files);
    const hasModule = moduleFiles.length > 0;
    return {
      readme: readme?.text ?? "",
      // The server sets the snapshot variable, so people are not asked for it.
      variables: hasModule ? declared.filter(({ name }) => name !== SNAPSHOT_NAME) : declared,
      snapshot_module: hasModule ? { problem: findModuleProblem(files, moduleFiles) } : undefined,
      given: parseAssignedNames(await read(isValuesFile)),
      files: files.length,
    };
  });

/** Returns why the module cannot make snapshots; undefined if it can. */
const findModuleProblem = (template: readonly TemplateFile[], module: readonly TemplateFile[]): string | undefined => {
  const templateVariables = parseDeclaredVariables(template);
  const moduleVariables = parseDeclaredVariables(module);
  const snapshotVariable = templateVariables.find(({ name }) => name === SNAPSHOT_NAME);
  const knownNames = new Set([...templateVariables.map(({ name }) => name), ...MODULE_VARIABLES]);
  const unknownVariable = moduleVariables.find(
    (variable) => variable.default === undefined && !knownNames.has(variable.name),
  );
  const describeMissing = (missing: string, location: string): string =>
    `The folder ${SNAPSHOT_FOLDER} needs ${missing} in ${location}.`;
  if (!listDeclaredOutputs(template).has(SNAPSHOT_NAME))
    return describeMissing(`an output "${SNAPSHOT_NAME}"`, "the template");
  if (snapshotVariable?.default === undefined)
    return describeMissing(`a variable "${SNAPSHOT_NAME}" with the default null`, "the template");
  if (!moduleVariables.some(({ name }) => name === SNAPSHOT_NAME))
    return describeMissing(`a variable "${SNAPSHOT_NAME}"`, "its own files");
  if (!listDeclaredOutputs(module).has(SNAPSHOT_NAME))
    return describeMissing(`an output "${SNAPSHOT_NAME}"`, "its own files");
  if (unknownVariable)
    return `The variable "${unknownVariable.name}" of ${SNAPSHOT_FOLDER} needs a default, or a variable of the same name in the template.`;
  return undefined;
};
