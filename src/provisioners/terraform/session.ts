// The folder of one run: the template unpacked, the values of its variables, the state. The provider makes `.coder` beside the working
// folder (facts/terraform 1.1), so both lie in a folder of the run's own. Whatever is here is the server's user's alone.
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { withArchive } from "../archive.ts";
import type { ArchiveEntry } from "../archive-entry.ts";
import { ProvisionError } from "../provisioner.ts";
import { topFolder } from "../template-source.ts";
import type { TemplateArchive } from "./work.ts";

/** Characters of a state. Larger ones stay in their folder, where a person can get at them. */
export const STATE_LIMIT = 16 * 1024 * 1024;
/** Bytes of one file of a template. */
const FILE_LIMIT = 100 * 1024 * 1024;

/** What a template does not bring along: Terraform's own folder, and states. */
const LEFT_OUT = /^(?:\.terraform\/|terraform\.tfstate|\.terraform\.tfstate)/;

export class Session {
  /** The folder of the run. */
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
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
    return join(this.work, "terraform.tfstate");
  }

  exists(): boolean {
    return existsSync(this.folder);
  }

  /** Unpacks the template and, over it, what its import has cached. What was here of an earlier run goes, but its state. */
  async prepare(archive: TemplateArchive, cache?: TemplateArchive): Promise<void> {
    const left = this.state();
    rmSync(this.folder, { recursive: true, force: true });
    mkdirSync(this.work, { recursive: true, mode: 0o700 });
    // First of all: whoever is killed from now on still has it.
    if (left !== undefined) this.keepState(left);
    await withArchive(archive.path, archive.mimetype, async ({ entries }) => {
      const top = topFolder(entries);
      const own = entries.map((entry) => ({ entry, name: entry.name.slice(top.length) }));
      await this.#write(own.filter(({ name }) => !LEFT_OUT.test(name)));
    });
    if (!cache) return;
    await withArchive(cache.path, cache.mimetype, ({ entries }) =>
      this.#write(entries.map((entry) => ({ entry, name: entry.name }))),
    );
  }

  async #write(files: readonly { entry: ArchiveEntry; name: string }[]): Promise<void> {
    for (const { entry, name } of files) {
      const path = join(this.work, name);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(path, await entry.read(FILE_LIMIT));
      chmodSync(path, (entry.mode & 0o700) | 0o600);
    }
  }

  keepVariables(text: string): void {
    writeFileSync(this.variablesFile, text, { mode: 0o600 });
  }

  /** Written whole or not at all. */
  keepState(state: string): void {
    mkdirSync(this.work, { recursive: true, mode: 0o700 });
    const next = `${this.#stateFile}.next`;
    writeFileSync(next, state, { mode: 0o600 });
    renameSync(next, this.#stateFile);
  }

  /**
   * As Terraform has left it; undefined when there is none, or when code of the template has put something else there than a plain file, such
   * as a link to a file of the server's. Throws ProvisionError for one that is too large to be kept.
   */
  state(): string | undefined {
    const found = lstatSync(this.#stateFile, { throwIfNoEntry: false });
    if (!found?.isFile() || found.size === 0) return undefined;
    const { size } = found;
    if (size > STATE_LIMIT) {
      throw new ProvisionError(
        `The state has ${size} bytes, more than ${STATE_LIMIT}; it stays in ${this.#stateFile} and must be pulled from there.`,
      );
    }
    return readFileSync(this.#stateFile, "utf8");
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

type Serial = { readonly lineage: string; readonly serial: number };

const serialOf = (state: string): Serial | undefined => {
  try {
    const { lineage, serial } = JSON.parse(state) as Partial<Serial>;
    return typeof lineage === "string" && typeof serial === "number" ? { lineage, serial } : undefined;
  } catch {
    return undefined;
  }
};

/**
 * The state to go on from: what a run that was cut short has left in its folder, when it is newer than what is stored (the server may
 * have died before it was); else what is stored.
 */
export const newerState = (stored: string | null, left: string | undefined): string | null => {
  const ours = left === undefined ? undefined : serialOf(left);
  if (left === undefined || !ours) return stored;
  if (stored === null) return left;
  const theirs = serialOf(stored);
  return theirs && theirs.lineage === ours.lineage && ours.serial > theirs.serial ? left : stored;
};

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
