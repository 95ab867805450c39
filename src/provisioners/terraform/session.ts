// The folder of one run: the template unpacked, the values of its variables, the state. The provider makes `.coder` alongside the working
// folder (facts/terraform 1.1), so both lie in a folder of the run's own. Whatever is here is the server's user's alone. Nothing waits
// for a disk in the event loop: one that is busy with what runs write lets anyone who makes or removes a file wait.
import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withArchive } from "../archive.ts";
import type { ArchiveEntry } from "../archive-entry.ts";
import { ProvisionError } from "../provisioner.ts";
import { topFolder } from "../template-source.ts";
import type { TemplateArchive } from "./work.ts";

/** Characters of a state. Larger ones stay in their folder, where a person can get at them. */
export const STATE_LIMIT = 16 * 1024 * 1024;
const STATE = "terraform.tfstate";
/** Where Terraform writes it when it cannot write the other one. */
const ERRORED = "errored.tfstate";
/** Bytes of one file of a template. */
const FILE_LIMIT = 100 * 1024 * 1024;

/** What a template does not bring along: Terraform's own folder, and states. */
const LEFT_OUT = /^(?:\.terraform\/|terraform\.tfstate|\.terraform\.tfstate|errored\.tfstate)/;

export class Session {
  /** The folder of the run. */
  readonly folder: string;
  /** The folder of the template that is run; empty for all of it. */
  readonly #part: string;

  constructor(folder: string, part = "") {
    this.folder = folder;
    this.#part = part === "" ? "" : `${part}/`;
  }

  /** Where Terraform runs. */
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
    return join(this.work, STATE);
  }

  /** Unpacks the template and, over it, what its import has cached. What was here of an earlier run goes, but its state. */
  async prepare(archive: TemplateArchive, cache?: TemplateArchive): Promise<void> {
    // The state stays where it is in the meantime: anyone who is killed in the middle still has it.
    if ((await this.state()) === undefined) await this.remove();
    else await this.#removeAllBut(STATE);
    await mkdir(this.work, { recursive: true, mode: 0o700 });
    await withArchive(archive.path, archive.mimetype, async ({ entries }) => {
      const top = topFolder(entries);
      const begin = `${top}${this.#part}`;
      const own = entries
        .filter(({ name }) => name.startsWith(begin))
        .map((entry) => ({ entry, name: entry.name.slice(begin.length) }));
      await this.#write(own.filter(({ name }) => !LEFT_OUT.test(name)));
    });
    if (!cache) return;
    await withArchive(cache.path, cache.mimetype, ({ entries }) =>
      this.#write(entries.map((entry) => ({ entry, name: entry.name }))),
    );
  }

  /** But for this file of the working folder. */
  async #removeAllBut(file: string): Promise<void> {
    const gone = async (folder: string, but: string): Promise<void> => {
      for (const name of await readdir(folder)) {
        if (name !== but) await rm(join(folder, name), { recursive: true, force: true });
      }
    };
    await gone(this.folder, basename(this.work));
    await gone(this.work, file);
  }

  async #write(files: readonly { entry: ArchiveEntry; name: string }[]): Promise<void> {
    for (const { entry, name } of files) {
      const path = join(this.work, name);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFile(path, await entry.read(FILE_LIMIT), { mode: (entry.mode & 0o700) | 0o600 });
    }
  }

  async keepVariables(text: string): Promise<void> {
    await writeFile(this.variablesFile, text, { mode: 0o600 });
  }

  /** Values of variables, which Terraform reads on its own and takes literally. */
  async keepValues(values: Readonly<Record<string, unknown>>): Promise<void> {
    if (Object.keys(values).length === 0) return;
    await writeFile(join(this.work, "slipway.auto.tfvars.json"), JSON.stringify(values), { mode: 0o600 });
  }

  /** Written whole or not at all. */
  async keepState(state: string): Promise<void> {
    await mkdir(this.work, { recursive: true, mode: 0o700 });
    const next = `${this.#stateFile}.next`;
    await writeFile(next, state, { mode: 0o600 });
    await rename(next, this.#stateFile);
  }

  /**
   * As Terraform has left it, also where it could only write it alongside its place; undefined when none exists, or when code of the template has
   * put something else there than a plain file, such as a link to a file of the server's. Throws ProvisionError for one that is too large to be
   * kept.
   */
  async state(): Promise<string | undefined> {
    const [usual, errored] = [await stateIn(this.#stateFile), await stateIn(join(this.work, ERRORED))];
    if (usual === undefined || !isState(usual)) return errored !== undefined && isState(errored) ? errored : undefined;
    return newerState(usual, errored) ?? undefined;
  }

  /** Another one when the state may have changed: what is large is not read for nothing. */
  async stamp(): Promise<string> {
    const found = await lstat(this.#stateFile).catch(() => undefined);
    return found ? `${found.mtimeMs} ${found.size}` : "";
  }

  /** Whether it holds no state, not even one that cannot be read. */
  async isEmpty(): Promise<boolean> {
    const files = [this.#stateFile, join(this.work, ERRORED)];
    const found = await Promise.all(files.map((file) => lstat(file).catch(() => undefined)));
    return found.every((file) => !file?.isFile() || file.size === 0);
  }

  /**
   * Puts a state that cannot be read where nobody removes it, because it may be all that is known of what was made; answers the place. A program that
   * is killed while it writes, or that has no room to, leaves one. `known`: what was there before the run is no loss.
   */
  async setAside(known: string | null): Promise<string | undefined> {
    const text = await stateIn(this.#stateFile);
    if (text === undefined || text === known || isState(text)) return undefined;
    const folder = join(dirname(dirname(this.folder)), "unreadable");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { mtimeMs } = await lstat(this.#stateFile);
    const place = join(folder, `${basename(this.folder)}-${Math.round(mtimeMs)}.tfstate`);
    await rename(this.#stateFile, place);
    return place;
  }

  /** Where the template keeps its state itself, after init; undefined when it stays here. */
  async backend(): Promise<string | undefined> {
    const text = await readFile(join(this.work, ".terraform", STATE), "utf8").catch(() => "{}");
    try {
      const { backend } = JSON.parse(text) as { backend?: { type?: string; config?: { path?: unknown } } };
      return backend?.type === "local" && !backend.config?.path ? undefined : backend?.type;
    } catch {
      return undefined;
    }
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

const stateIn = async (file: string): Promise<string | undefined> => {
  const found = await lstat(file).catch(() => undefined);
  if (!found?.isFile() || found.size === 0) return undefined;
  if (found.size > STATE_LIMIT) {
    throw new ProvisionError(
      `The state has ${found.size} bytes, more than ${STATE_LIMIT}; it stays in ${file} and must be pulled from there.`,
    );
  }
  return readFile(file, "utf8");
};

export type Serial = { readonly lineage: string; readonly serial: number };

/** Whether Terraform could go on from it. */
export const isState = (text: string): boolean => parseSerial(text) !== undefined;

export const parseSerial = (state: string): Serial | undefined => {
  try {
    const { lineage, serial } = JSON.parse(state) as Partial<Serial>;
    return typeof lineage === "string" && typeof serial === "number" ? { lineage, serial } : undefined;
  } catch {
    return undefined;
  }
};

/**
 * The state to continue from: what a run that was cut short has left in its folder, when it is newer than what is stored (the server may
 * have died before it was); else what is stored.
 */
export const newerState = (stored: string | null, left: string | undefined): string | null => {
  const ours = left === undefined ? undefined : parseSerial(left);
  if (left === undefined || !ours) return stored;
  if (stored === null) return left;
  const theirs = parseSerial(stored);
  return theirs && theirs.lineage === ours.lineage && ours.serial > theirs.serial ? left : stored;
};

/** Whether nothing is there that a delete would have to remove. What OpenTofu has encrypted only the template itself can read. */
export const isBare = (state: string | null): boolean =>
  thingsIn(state).length === 0 && !state?.includes('"encrypted_data"');

/** Addresses of what a state holds, for people; data sources are no things. */
export const thingsIn = (state: string | null): string[] => {
  try {
    const { resources = [] } = JSON.parse(state ?? "{}") as {
      resources?: { mode: string; type: string; name: string; module?: string; instances?: unknown[] }[];
    };
    return resources
      .filter(
        ({ mode, type, instances = [] }) => mode === "managed" && !type.startsWith("coder_") && instances.length > 0,
      )
      .map(({ module, type, name }) => `${module ? `${module}.` : ""}${type}.${name}`);
  } catch {
    return [];
  }
};
