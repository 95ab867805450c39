// Checkpoints of the workspace's files, one for each message of a chat, and the way back to one (rules UN-1 to UN-7, UN-10). Covers the
// repositories in the agent's folder, and the folder itself where it is none. Used by http.ts through checkpoint-http.ts.
import type { Dirent } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { oneAtATime } from "#base/retry.ts";
import { CHECKPOINT_DAYS, type Checkpoint, type Restored } from "#schema/agents/checkpoint.ts";
import { isRepository, repositoryOf } from "../git/repositories.ts";
import type { GitOptions } from "../git/scan.ts";
import { type Changes, ShadowGit } from "./git.ts";
import { isForgotten, isOlder, type Kept, pruneObjects } from "./objects.ts";
import { type CheckpointRecord, CheckpointRecords } from "./records.ts";

const MOST_ROOTS = 32;
const MOST_FOLDERS = 2_000;
const DEEPEST = 3;
const DAY_MS = 86_400_000;
const PASSED_OVER = new Set(["node_modules", "vendor", "target", "dist", "build"]);

/** `folder`: the agent's. `state`: where checkpoints are kept. */
export type CheckpointsOptions = GitOptions & { readonly folder: () => string; readonly state: string };

type Step = { readonly shadow: ShadowGit; readonly now: string; readonly tree: string; readonly changes: Changes };

/** Folders of the state: records, and beside them a git directory for each folder of the workspace. */
const RECORDS = "chats";
/** Its time is when all was looked through last. */
const TIDIED = "tidied";

export class Checkpoints {
  readonly #options: CheckpointsOptions;
  readonly #records: CheckpointRecords;
  readonly #shadows = new Map<string, ShadowGit>();
  /** They share index files. */
  readonly #inTurn = oneAtATime();
  #next: Promise<CheckpointRecord> | undefined;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
    this.#records = new CheckpointRecords(join(options.state, RECORDS));
  }

  /**
   * Keeps the files as they are, once for each message. Those who ask while others are served share one look. Once a day the answer is
   * the chats that have checkpoints. What nobody needs any more goes afterwards.
   */
  async take(of: Checkpoint): Promise<string[] | undefined> {
    if (await this.#records.read(of)) return undefined;
    this.#next ??= this.#inTurn(() => {
      this.#next = undefined;
      return this.#capture();
    });
    await this.#records.write(of, await this.#next);
    const isDue = await this.#isDue();
    const isLess = await this.#records.cut(of.chat_id);
    if (isDue || isLess) this.#tidyLater(isDue);
    return isDue ? this.#records.chats() : undefined;
  }

  /** Forgets the checkpoints of these chats. */
  async forget(chat_ids: readonly string[]): Promise<void> {
    await this.#records.forget(chat_ids);
    this.#tidyLater(false);
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await this.#inTurn(async () => {});
  }

  /** Brings the files back, all or none. 404 without a checkpoint, 409 with what stands in the way. */
  restore(of: Checkpoint): Promise<Restored> {
    return this.#inTurn(async () => {
      const record = await this.#records.read(of);
      if (!record) throw new AppError("not_found", "There is no checkpoint of the workspace's files for this message.");
      const lacking = record.roots.length === 0 ? [...record.lacking, ...record.left_out] : record.lacking;
      if (lacking.length > 0) throw inTheWay(`the checkpoint is not complete: ${lacking.join("; ")}`);
      const steps: Step[] = [];
      for (const { root, tree } of record.roots) {
        if (!(await this.#isStill(root))) throw inTheWay(`${root} is no longer there`);
        const shadow = this.#shadow(root, await isRepository(root));
        const now = await shadow.capture();
        steps.push({ shadow, now, tree, changes: await shadow.changes(now, tree) });
      }
      const wrong = (await Promise.all(steps.map(({ shadow, changes }) => shadow.problems(changes)))).flat();
      if (wrong.length > 0) throw inTheWay(wrong.join("; "));
      await this.#applyAll(steps);
      const files = steps.flatMap(({ shadow, changes }) => [
        ...changes.write.map(({ path }) => join(shadow.root, path)),
        ...changes.remove.map((path) => join(shadow.root, path)),
      ]);
      return { restored_files: files.length, left_out: [...record.left_out] };
    });
  }

  /** What has been changed is changed back when one of them fails. */
  async #applyAll(steps: readonly Step[]): Promise<void> {
    const begun: Step[] = [];
    try {
      for (const step of steps) {
        begun.push(step);
        await step.shadow.apply(step.tree, step.changes);
      }
    } catch (error) {
      for (const { shadow, now } of begun) {
        await this.#undo(shadow, now).catch((again) => {
          log("daemon").error("{root} was left between two checkpoints: {error}", { root: shadow.root, error: again });
        });
      }
      const detail = error instanceof AppError ? error.message : String(error);
      throw new AppError("conflict", "The files could not be brought back; they are as they were.", { detail });
    }
  }

  async #undo(shadow: ShadowGit, tree: string): Promise<void> {
    const now = await shadow.capture();
    await shadow.apply(tree, await shadow.changes(now, tree));
  }

  async #capture(): Promise<CheckpointRecord> {
    const left_out: string[] = [];
    const lacking: string[] = [];
    const roots: { root: string; tree: string }[] = [];
    for (const { root, isRepository: isOne } of await this.#roots()) {
      try {
        roots.push({ root, tree: await this.#shadow(root, isOne).capture() });
      } catch (error) {
        // One folder that is too large does not take the others' checkpoints away.
        (isOne ? lacking : left_out).push(error instanceof AppError ? error.message : `${root} could not be looked at`);
        log("daemon").warn("no checkpoint of {root}: {error}", { root, error });
      }
    }
    return { roots, left_out, lacking };
  }

  async #roots(): Promise<{ root: string; isRepository: boolean }[]> {
    const folder = this.#options.folder();
    const around = await repositoryOf(folder);
    const found = [{ root: around ?? folder, isRepository: around !== undefined }];
    let looked = 0;
    const look = async (place: string, depth: number): Promise<void> => {
      const entries = await readdir(place, { withFileTypes: true }).catch(() => []);
      for (const entry of entries) {
        if (!entry.isDirectory() || entry.name.startsWith(".") || PASSED_OVER.has(entry.name)) continue;
        looked += 1;
        if (looked > MOST_FOLDERS || found.length >= MOST_ROOTS) return;
        const path = join(place, entry.name);
        if (await isRepository(path)) found.push({ root: path, isRepository: true });
        if (depth < DEEPEST) await look(path, depth + 1);
      }
    };
    await look(folder, 1);
    return found;
  }

  async #isStill(root: string): Promise<boolean> {
    return (await readdir(root).catch(() => undefined)) !== undefined;
  }

  #shadow(root: string, isOne: boolean): ShadowGit {
    const name = nameOf(isOne ? "repository" : "folder", root);
    const known = this.#shadows.get(name);
    if (known) return known;
    const made = new ShadowGit(this.#options, { root, place: join(this.#options.state, name), isRepository: isOne });
    this.#shadows.set(name, made);
    return made;
  }

  /** True once a day. */
  async #isDue(): Promise<boolean> {
    const mark = join(this.#options.state, TIDIED);
    const now = this.#options.clock.now();
    const isFirst = !(await isOlder(mark, Number.MAX_SAFE_INTEGER));
    if (!isFirst && !(await isOlder(mark, now - DAY_MS))) return false;
    await mkdir(this.#options.state, { recursive: true, mode: 0o700 });
    await writeFile(mark, "");
    return !isFirst;
  }

  #tidyLater(withOld: boolean): void {
    this.#inTurn(() => this.#tidy(withOld)).catch((error) => {
      log("daemon").warn("old checkpoints were not removed: {error}", { error });
    });
  }

  async #tidy(withOld: boolean): Promise<void> {
    const now = this.#options.clock.now();
    // A day more than the server counts on: its clock may be another.
    if (withOld) await this.#records.expire(now - (CHECKPOINT_DAYS + 1) * DAY_MS, now);
    const needed = new Map(
      [...(await this.#records.trees())].flatMap(([root, trees]) => KINDS.map((kind) => [nameOf(kind, root), trees])),
    );
    const entries = await readdir(this.#options.state, { withFileTypes: true }).catch(() => []);
    for (const { name } of entries.filter(isShadow)) {
      const place = join(this.#options.state, name);
      const trees = needed.get(name);
      if (trees) await this.#prune(name, { place, trees });
      else if (await isForgotten(place, now)) {
        this.#shadows.delete(name);
        await rm(place, { recursive: true, force: true });
      }
    }
  }

  /** One that cannot be looked through does not hold up the others. */
  async #prune(name: string, kept: Kept): Promise<void> {
    try {
      const count = await pruneObjects(this.#options, kept);
      if (count > 0) log("daemon").debug("{count} objects of old checkpoints were removed", { count });
    } catch (error) {
      this.#shadows.delete(name);
      log("daemon").warn("old checkpoints in {name} were not removed: {error}", { name, error });
    }
  }
}

/** What a folder was when its files were kept. */
const KINDS = ["repository", "folder"] as const;

const nameOf = (kind: (typeof KINDS)[number], root: string): string => sha256(`${kind} ${root}`).slice(0, 32);

const isShadow = (entry: Dirent): boolean => entry.isDirectory() && /^[0-9a-f]{32}$/.test(entry.name);

const inTheWay = (detail: string): AppError =>
  new AppError("conflict", "The files cannot be brought back.", { detail });
