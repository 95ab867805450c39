// Checkpoints of the workspace's files, one for each message of a chat, and the way back to one (rules UN-1 to UN-7). Covers the
// repositories in the agent's folder, and the folder itself where it is none. Used by http.ts through checkpoint-http.ts.
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "#base/errors.ts";
import { sha256, uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Checkpoint, Restored } from "#schema/checkpoint.ts";
import { type Changes, ShadowGit } from "./checkpoint-git.ts";
import { isRepository, repositoryOf } from "./git-places.ts";
import type { GitOptions } from "./git-scan.ts";

const MOST_ROOTS = 32;
const MOST_FOLDERS = 2_000;
const DEEPEST = 3;
const PASSED_OVER = new Set(["node_modules", "vendor", "target", "dist", "build"]);

/** `folder`: the agent's. `state`: where checkpoints are kept. */
export type CheckpointsOptions = GitOptions & { readonly folder: () => string; readonly state: string };

/** As a file: which trees belong to the checkpoint, and what could not be covered. */
type Record_ = {
  readonly roots: readonly { readonly root: string; readonly tree: string }[];
  readonly left_out: readonly string[];
  /** Repositories that are not covered: without them nothing is brought back. */
  readonly lacking: readonly string[];
};
type Step = { readonly shadow: ShadowGit; readonly now: string; readonly tree: string; readonly changes: Changes };

export class Checkpoints {
  readonly #options: CheckpointsOptions;
  readonly #shadows = new Map<string, ShadowGit>();
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<Record_> | undefined;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
  }

  /** Keeps the files as they are, once for each message. Those who ask while others are served share one look. */
  async take({ chat_id, message_id }: Checkpoint): Promise<void> {
    const file = this.#fileOf({ chat_id, message_id });
    if (await readRecord(file)) return;
    this.#next ??= this.#inTurn(() => {
      this.#next = undefined;
      return this.#capture();
    });
    const record = await this.#next;
    await mkdir(join(file, ".."), { recursive: true, mode: 0o700 });
    const beside = `${file}.${uuid()}`;
    await writeFile(beside, JSON.stringify(record));
    await rename(beside, file);
  }

  /** Brings the files back, all or none. 404 without a checkpoint, 409 with what stands in the way. */
  restore(of: Checkpoint): Promise<Restored> {
    return this.#inTurn(async () => {
      const record = await readRecord(this.#fileOf(of));
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

  async #capture(): Promise<Record_> {
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
    const kind = isOne ? "repository" : "folder";
    const name = sha256(`${kind} ${root}`).slice(0, 32);
    const known = this.#shadows.get(name);
    if (known) return known;
    const made = new ShadowGit(this.#options, { root, place: join(this.#options.state, name), isRepository: isOne });
    this.#shadows.set(name, made);
    return made;
  }

  #fileOf({ chat_id, message_id }: Checkpoint): string {
    return join(this.#options.state, "chats", chat_id, `${message_id}.json`);
  }

  /** One at a time: they share index files. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done.catch(() => {});
    return done;
  }
}

const readRecord = async (file: string): Promise<Record_ | undefined> => {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Record_;
  } catch {
    return undefined;
  }
};

const inTheWay = (detail: string): AppError =>
  new AppError("conflict", "The files cannot be brought back.", { detail });
