// The object store that all folders of a workspace share. Removes objects that no checkpoint references and merges packs (rule UN-10).
// Objects written within the last hour are kept, because another daemon on the same folder may be about to reference them. If git cannot
// determine which objects are referenced, no object is removed.
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
   * Removes unreferenced objects and git directories. Returns the names of the removed directories. `neededTrees`: the referenced trees by
   * name of the git directory.
   */
  async removeUnreferenced(neededTrees: ReadonlyMap<string, ReadonlySet<string>>): Promise<string[]> {
    const { work, objects } = this.#folders;
    const beforeMs = this.#options.clock.now() - GRACE_MS;
    const removed: string[] = [];
    let referencedTrees: string[] | undefined = [];
    for (const name of await readdir(work).catch(() => [])) {
      const path = join(work, name);
      const trees = neededTrees.get(name);
      if (!trees && (await isOlder(join(path, "info", "ready"), beforeMs))) {
        await rm(path, { recursive: true, force: true });
        removed.push(name);
        continue;
      }
      await removeTemporaryFiles(path, beforeMs);
      const indexTree = await this.#writeIndexTree(path);
      // If the references of one folder are unknown, nothing may be removed.
      if (indexTree === undefined) referencedTrees = undefined;
      else referencedTrees?.push(...(trees ?? []), ...indexTree);
    }
    if (referencedTrees) await this.#removeUnreferencedObjects([...new Set(referencedTrees)], beforeMs);
    await removeUnfinishedPacks(join(objects, "pack"), beforeMs);
    return removed;
  }

  /**
   * Returns the tree of the index, because the index also references objects; an empty list if there is no index yet. If the index cannot
   * be read, deletes the git directory and returns undefined; the next checkpoint builds a new index.
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

  async #removeUnreferencedObjects(trees: readonly string[], beforeMs: number): Promise<void> {
    const { objects } = this.#folders;
    const loose = await listLooseBefore(objects, beforeMs);
    const packs = await listPacksBefore(join(objects, "pack"), beforeMs);
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
      for (const extension of ["idx", "pack", "rev"])
        await rm(join(objects, "pack", `${pack}.${extension}`), { force: true });
    }
  }

  /** Returns the objects of these trees that are in the store. */
  async #listReachable(trees: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    const [name] = await readdir(this.#folders.work).catch(() => []);
    if (name === undefined || trees.length === 0) return found;
    const path = join(this.#folders.work, name);
    const listed: string[] = [];
    let partialLine = "";
    const args = ["rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--ignore-missing", "--stdin"];
    await runCheckpointGit(this.#options, {
      ...this.#toGitFolders(path),
      args,
      input: trees.map((tree) => `${tree}\n`).join(""),
      timeout_ms: BULK_TIMEOUT_MS,
      onText(text) {
        const lines = (partialLine + text).split("\n");
        partialLine = lines.pop() ?? "";
        listed.push(...lines);
      },
    });
    const existing = await this.#runGit(
      path,
      ["cat-file", "--batch-check=%(objectname)"],
      listed.map((id) => `${id}\n`).join(""),
    );
    for (const line of existing.split("\n")) if (/^[0-9a-f]+$/.test(line)) found.add(line);
    return found;
  }

  #runGit(folder: string, args: readonly string[], input?: string): Promise<string> {
    const commandOptions = { timeout_ms: BULK_TIMEOUT_MS, ...(input === undefined ? {} : { input }) };
    return runCheckpointGit(this.#options, { ...this.#toGitFolders(folder), args, ...commandOptions });
  }

  /** The root does not matter: none of these commands reads the work tree. */
  #toGitFolders(folder: string) {
    return { gitDirectory: folder, objects: this.#folders.objects, root: folder };
  }
}

/** Returns the paths of loose objects by ID. */
const listLooseBefore = async (objects: string, beforeMs: number): Promise<Map<string, string>> => {
  const found = new Map<string, string>();
  for (const head of await readdir(objects).catch(() => [])) {
    if (!/^[0-9a-f]{2}$/.test(head)) continue;
    for (const tail of await readdir(join(objects, head))) {
      const file = join(objects, head, tail);
      if (await isOlder(file, beforeMs)) found.set(head + tail, file);
    }
  }
  return found;
};

/** Returns pack names without extension. */
const listPacksBefore = async (folder: string, beforeMs: number): Promise<string[]> => {
  const found: string[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    const pack = /^(pack-[0-9a-f]+)\.pack$/.exec(name)?.[1];
    if (pack !== undefined && (await isOlder(join(folder, name), beforeMs))) found.push(pack);
  }
  return found;
};

const removeTemporaryFiles = async (folder: string, beforeMs: number): Promise<void> => {
  for (const name of await readdir(folder)) {
    if (TEMPORARY_FILES.test(name) && (await isOlder(join(folder, name), beforeMs))) {
      await rm(join(folder, name), { recursive: true, force: true });
    }
  }
};

/** Removes unfinished packs. */
const removeUnfinishedPacks = async (folder: string, beforeMs: number): Promise<void> => {
  for (const name of await readdir(folder).catch(() => [])) {
    if (name.startsWith("tmp_") && (await isOlder(join(folder, name), beforeMs)))
      await rm(join(folder, name), { force: true });
  }
};

/** Returns true if the file was last modified before this time, and false if it is missing. */
export const isOlder = (file: string, beforeMs: number): Promise<boolean> =>
  stat(file).then(
    ({ mtimeMs }) => mtimeMs < beforeMs,
    () => false,
  );
