// Manages the folder of one run: the unpacked template, its variable values, and the state. The working directory is a subfolder, because
// the provider creates `.coder` next to it (facts/terraform 1.1). Only the server's user can read the folder. All disk access is
// asynchronous, because a disk that is busy with the output of runs delays each creation and removal of a file.

import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withArchive } from "../archive.ts";
import type { ArchiveEntry } from "../archive-entry.ts";
import { ProvisionError } from "../provisioner.ts";
import { findTopFolder } from "../template-source.ts";
import { parseState } from "./state-json.ts";
import type { TemplateArchive } from "./work.ts";

/** Maximum size of a state. A larger state is kept in its folder, where an administrator can retrieve it. */
export const MAX_STATE_BYTES = 16 * 1024 * 1024;
const STATE_FILE = "terraform.tfstate";
/** Terraform's fallback file if it cannot write the state. */
const ERRORED_STATE_FILE = "errored.tfstate";
/** Maximum bytes of one template file. */
const MAX_FILE_BYTES = 100 * 1024 * 1024;

/** Files that are not unpacked from a template: Terraform's own folder, and states. */
const OMITTED_FILES = /^(?:\.terraform\/|terraform\.tfstate|\.terraform\.tfstate|errored\.tfstate)/;

export class Session {
  /** The folder of the run. */
  readonly folder: string;
  /** The folder of the template to run; empty for the whole template. */
  readonly #templateFolder: string;

  constructor(folder: string, templateFolder = "") {
    this.folder = folder;
    this.#templateFolder = templateFolder === "" ? "" : `${templateFolder}/`;
  }

  /** The working directory of Terraform. */
  get work(): string {
    return join(this.folder, "w");
  }

  get planFile(): string {
    return join(this.folder, "plan");
  }

  get variablesFile(): string {
    return join(this.folder, "values.tfvars");
  }

  get #stateFile(): string {
    return join(this.work, STATE_FILE);
  }

  /** Unpacks the template, and over it the cache of its import. Removes the files of an earlier run except its state. */
  async prepare(archive: TemplateArchive, cache?: TemplateArchive): Promise<void> {
    // The state stays in place, so that it is not lost if the server is killed here.
    if ((await this.readState()) === undefined) await this.remove();
    else await this.#removeAllButState();
    await mkdir(this.work, { recursive: true, mode: 0o700 });
    await withArchive(archive.path, archive.mimetype, async ({ entries }) => {
      const prefix = `${findTopFolder(entries)}${this.#templateFolder}`;
      const templateFiles = entries
        .filter(({ name }) => name.startsWith(prefix))
        .map((entry) => ({ entry, name: entry.name.slice(prefix.length) }));
      await this.#write(templateFiles.filter(({ name }) => !OMITTED_FILES.test(name)));
    });
    if (!cache) return;
    await withArchive(cache.path, cache.mimetype, ({ entries }) =>
      this.#write(entries.map((entry) => ({ entry, name: entry.name }))),
    );
  }

  async #removeAllButState(): Promise<void> {
    const removeAllBut = async (folder: string, keptName: string): Promise<void> => {
      for (const name of await readdir(folder)) {
        if (name !== keptName) await rm(join(folder, name), { recursive: true, force: true });
      }
    };
    await removeAllBut(this.folder, basename(this.work));
    await removeAllBut(this.work, STATE_FILE);
  }

  async #write(files: readonly { entry: ArchiveEntry; name: string }[]): Promise<void> {
    for (const { entry, name } of files) {
      const path = join(this.work, name);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFile(path, await entry.read(MAX_FILE_BYTES), { mode: (entry.mode & 0o700) | 0o600 });
    }
  }

  async writeVariables(text: string): Promise<void> {
    await writeFile(this.variablesFile, text, { mode: 0o600 });
  }

  /** Writes values of variables to a JSON file that Terraform reads automatically. */
  async writeValues(values: Readonly<Record<string, unknown>>): Promise<void> {
    if (Object.keys(values).length === 0) return;
    await writeFile(join(this.work, "slipway.auto.tfvars.json"), JSON.stringify(values), { mode: 0o600 });
  }

  /** Writes the state atomically. */
  async writeState(state: string): Promise<void> {
    await mkdir(this.work, { recursive: true, mode: 0o700 });
    const draft = `${this.#stateFile}.next`;
    await writeFile(draft, state, { mode: 0o600 });
    await rename(draft, this.#stateFile);
  }

  /**
   * Returns the state that Terraform has written, from the state file or the fallback file. Returns undefined if there is no state, or if
   * the template's code has replaced the file, for example by a link to a file of the server. Throws ProvisionError for a state that is too
   * large to store.
   */
  async readState(): Promise<string | undefined> {
    const [regular, errored] = [
      await readStateFile(this.#stateFile),
      await readStateFile(join(this.work, ERRORED_STATE_FILE)),
    ];
    if (regular === undefined || !isState(regular))
      return errored !== undefined && isState(errored) ? errored : undefined;
    return pickNewerState(regular, errored) ?? undefined;
  }

  /** Returns a value that changes with the state, so that the caller does not have to read an unchanged large state. */
  async readStateStamp(): Promise<string> {
    const stats = await lstat(this.#stateFile).catch(() => undefined);
    return stats ? `${stats.mtimeMs} ${stats.size}` : "";
  }

  /** Returns true if the folder contains no state, not even an unreadable one. */
  async isEmpty(): Promise<boolean> {
    const files = [this.#stateFile, join(this.work, ERRORED_STATE_FILE)];
    const stats = await Promise.all(files.map((file) => lstat(file).catch(() => undefined)));
    return stats.every((file) => !file?.isFile() || file.size === 0);
  }

  /**
   * Moves an unreadable state to a folder where it is not removed, because it may be the only record of the created resources. Returns its
   * path. A program that is killed while writing, or runs out of disk space, leaves such a state. Does not move a state equal to `known`,
   * which existed before the run.
   */
  async moveUnreadableState(known: string | null): Promise<string | undefined> {
    const text = await readStateFile(this.#stateFile);
    if (text === undefined || text === known || isState(text)) return undefined;
    const folder = join(dirname(dirname(this.folder)), "unreadable");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { mtimeMs } = await lstat(this.#stateFile);
    const file = join(folder, `${basename(this.folder)}-${Math.round(mtimeMs)}.tfstate`);
    await rename(this.#stateFile, file);
    return file;
  }

  /** Returns the backend in which the template stores its state, after init; undefined if the state is stored here. */
  async readBackend(): Promise<string | undefined> {
    const text = await readStateFile(join(this.work, ".terraform", STATE_FILE));
    const { backend } = parseState(text ?? null) as { backend?: { type?: string; config?: { path?: unknown } } };
    return backend?.type === "local" && !backend.config?.path ? undefined : backend?.type;
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

const readStateFile = async (file: string): Promise<string | undefined> => {
  const stats = await lstat(file).catch(() => undefined);
  if (!stats?.isFile() || stats.size === 0) return undefined;
  if (stats.size > MAX_STATE_BYTES) {
    throw new ProvisionError(
      `The state has ${stats.size} bytes, more than ${MAX_STATE_BYTES}; it stays in ${file} and must be pulled from there.`,
    );
  }
  return readFile(file, "utf8");
};

export type Serial = { readonly lineage: string; readonly serial: number };

/** Returns true if the text is a state from which Terraform could continue. */
export const isState = (text: string): boolean => parseSerial(text) !== undefined;

export const parseSerial = (state: string): Serial | undefined => {
  const { lineage, serial } = parseState(state);
  return typeof lineage === "string" && typeof serial === "number" ? { lineage, serial } : undefined;
};

/** Returns the stored state, or the state of an interrupted run if it is newer, because the server may have died before storing it. */
export const pickNewerState = (stored: string | null, runState: string | undefined): string | null => {
  const runSerial = runState === undefined ? undefined : parseSerial(runState);
  if (runState === undefined || !runSerial) return stored;
  if (stored === null) return runState;
  const storedSerial = parseSerial(stored);
  return storedSerial && storedSerial.lineage === runSerial.lineage && runSerial.serial > storedSerial.serial
    ? runState
    : stored;
};

/**
 * Returns true if the state has no resources for a delete to remove. Returns false for an encrypted state, which only the template can
 * read, and for a state with too many values.
 */
export const isBare = (state: string | null): boolean => {
  try {
    return findResources(state).length === 0 && !state?.includes('"encrypted_data"');
  } catch {
    return false;
  }
};

/** Returns the addresses of the resources in a state, for people. Omits data sources; empty if the state cannot be read. */
export const listStateResources = (state: string | null): string[] => {
  try {
    return findResources(state);
  } catch {
    return [];
  }
};

const findResources = (state: string | null): string[] => {
  const { resources = [] } = parseState(state) as {
    resources?: { mode: string; type: string; name: string; module?: string; instances?: unknown[] }[];
  };
  return resources
    .filter(
      ({ mode, type, instances = [] }) => mode === "managed" && !type.startsWith("coder_") && instances.length > 0,
    )
    .map(({ module, type, name }) => `${module ? `${module}.` : ""}${type}.${name}`);
};
