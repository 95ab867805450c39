// The object store that all folders of a workspace share. Removes objects that no checkpoint references and merges packs (rule UN-10).
// Objects written within the last hour stay, because another daemon on the same folder may be about to reference them. Removes nothing if
// git cannot determine what is referenced.
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { log } from "#base/log.ts";
import type { GitOptions } from "../git/scan.ts";
import { BULK_TIMEOUT_MS, runCheckpointGit } from "./run.ts";

const GRACE_MS = 3_600_000;
/** Temporary files left by a killed process. */
const TEMPORARY_FILES = /^(index|input|rules)-|^(index\.lock|paths|ignored\.new)$/;

/** `work`: the folder with one git directory for each folder of the workspace. */
export type StoreFolders = { readonly work: string; readonly objects: string };

export class CheckpointStore {
  readonly #options: GitOptions;
  readonly #folders: StoreFolders;

  constructor(options: GitOptions, folders: StoreFolders) {
    this.#options = options;
    this.#folders = folders;
  }

  /**
   * Removes unreferenced objects and git directories, and returns the names of the removed directories. `needed`: trees by the name of the
   * folder's git directory.
   */
  async removeUnreferenced(needed: ReadonlyMap<string, ReadonlySet<string>>): Promise<string[]> {
    const { work, objects } = this.#folders;
    const before = this.#options.clock.now() - GRACE_MS;
    const removed: string[] = [];
    let needs: string[] | undefined = [];
    for (const name of await readdir(work).catch(() => [])) {
      const path = join(work, name);
      const trees = needed.get(name);
      if (!trees && (await isOlder(join(path, "info", "ready"), before))) {
        await rm(path, { recursive: true, force: true });
        removed.push(name);
        continue;
      }
      await removeLeavings(path, before);
      const indexTree = await this.#writeIndexTree(path);
      // If the references of one folder are unknown, nothing may be removed.
      if (indexTree === undefined) needs = undefined;
      else needs?.push(...(trees ?? []), ...indexTree);
    }
    if (needs) await this.#removeUnneeded([...new Set(needs)], before);
    await removeTemporary(join(objects, "pack"), before);
    return removed;
  }

  /**
   * Returns the tree of the index, which also references objects. Undefined if the index cannot be read: the next checkpoint builds a new
   * one.
   */
  async #writeIndexTree(folder: string): Promise<string[] | undefined> {
    if (!(await stat(join(folder, "info", "ready")).catch(() => undefined))) return [];
    try {
      return [(await this.#runGit(folder, ["write-tree", "--missing-ok"])).trim()];
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      log("daemon").warn("old checkpoints were not removed: {error}", { error });
      return undefined;
    }
  }

  async #removeUnneeded(trees: readonly string[], before: number): Promise<void> {
    const { objects } = this.#folders;
    const loose = await listLooseBefore(objects, before);
    const packs = await listPacksBefore(join(objects, "pack"), before);
    if (loose.size === 0 && packs.length < 2 && trees.length > 0) return;
    const ids = await this.#listReachable(trees);
    for (const id of ids) loose.delete(id);
    for (const file of loose.values()) await rm(file, { force: true });
    if (loose.size > 0) log("daemon").debug("{count} objects of old checkpoints were removed", { count: loose.size });
    if (packs.length > 1 || trees.length === 0) await this.#repack(ids, packs);
  }

  /** Merges the referenced objects of these packs into one pack and removes the old packs. */
  async #repack(ids: ReadonlySet<string>, packs: readonly string[]): Promise<void> {
    const { objects } = this.#folders;
    const [folder] = await readdir(this.#folders.work).catch(() => []);
    const createdPacks = new Set<string>();
    if (ids.size > 0 && folder !== undefined) {
      const input = [...ids].map((id) => `${id}\n`).join("");
      const args = ["pack-objects", "-q", "--window=0", join(objects, "pack", "pack")];
      for (const hash of (await this.#runGit(join(this.#folders.work, folder), args, input)).split("\n"))
        createdPacks.add(`pack-${hash}`);
    }
    for (const pack of packs) {
      if (createdPacks.has(pack)) continue;
      for (const end of ["idx", "pack", "rev"]) await rm(join(objects, "pack", `${pack}.${end}`), { force: true });
    }
  }

  /** Returns the objects of these trees that are in the store. */
  async #listReachable(trees: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    const [name] = await readdir(this.#folders.work).catch(() => []);
    if (name === undefined || trees.length === 0) return found;
    const path = join(this.#folders.work, name);
    const all: string[] = [];
    let rest = "";
    const args = ["rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--ignore-missing", "--stdin"];
    await runCheckpointGit(this.#options, {
      ...this.#toGitFolders(path),
      args,
      input: trees.map((tree) => `${tree}\n`).join(""),
      timeout_ms: BULK_TIMEOUT_MS,
      onText(text) {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        all.push(...lines);
      },
    });
    const known = await this.#runGit(
      path,
      ["cat-file", "--batch-check=%(objectname)"],
      all.map((id) => `${id}\n`).join(""),
    );
    for (const line of known.split("\n")) if (/^[0-9a-f]+$/.test(line)) found.add(line);
    return found;
  }

  #runGit(folder: string, args: readonly string[], input?: string): Promise<string> {
    const more = { timeout_ms: BULK_TIMEOUT_MS, ...(input === undefined ? {} : { input }) };
    return runCheckpointGit(this.#options, { ...this.#toGitFolders(folder), args, ...more });
  }

  /** None of these commands reads the work tree. */
  #toGitFolders(folder: string) {
    return { gitDirectory: folder, objects: this.#folders.objects, root: folder };
  }
}

/** Returns the paths of loose objects by ID. */
const listLooseBefore = async (objects: string, before: number): Promise<Map<string, string>> => {
  const found = new Map<string, string>();
  for (const head of await readdir(objects).catch(() => [])) {
    if (!/^[0-9a-f]{2}$/.test(head)) continue;
    for (const tail of await readdir(join(objects, head))) {
      const file = join(objects, head, tail);
      if (await isOlder(file, before)) found.set(head + tail, file);
    }
  }
  return found;
};

/** Returns pack names without extension. */
const listPacksBefore = async (folder: string, before: number): Promise<string[]> => {
  const found: string[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    const pack = /^(pack-[0-9a-f]+)\.pack$/.exec(name)?.[1];
    if (pack !== undefined && (await isOlder(join(folder, name), before))) found.push(pack);
  }
  return found;
};

const removeLeavings = async (folder: string, before: number): Promise<void> => {
  for (const name of await readdir(folder)) {
    if (TEMPORARY_FILES.test(name) && (await isOlder(join(folder, name), before))) {
      await rm(join(folder, name), { recursive: true, force: true });
    }
  }
};

/** Removes unfinished packs. */
const removeTemporary = async (folder: string, before: number): Promise<void> => {
  for (const name of await readdir(folder).catch(() => [])) {
    if (name.startsWith("tmp_") && (await isOlder(join(folder, name), before)))
      await rm(join(folder, name), { force: true });
  }
};

/** Returns false for a missing file. */
export const isOlder = (file: string, before: number): Promise<boolean> =>
  stat(file).then(
    ({ mtimeMs }) => mtimeMs < before,
    () => false,
  );
