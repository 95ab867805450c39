// Keeps which repositories a chat works on in files of the workspace, so that a daemon that starts again shows the same changes: one file
// for each chat, below the daemon's state (rule GS-7). Used by watch.ts.
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";

/** Chats that are kept; those that were written longest ago are removed first. */
const MAX_CHATS = 256;

/** What the tools of a chat have touched: repositories, and paths in which there is none yet, in their order. */
export type Touched = { readonly roots: readonly string[]; readonly paths: readonly string[] };

export class GitRecord {
  readonly #folder: string;
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns what was written last of the chat; undefined when there is nothing that can be read. */
  async read(chat: string): Promise<Touched | undefined> {
    try {
      const { roots, paths } = JSON.parse(await readFile(this.#toFile(chat), "utf8")) as Touched;
      return areTexts(roots) && areTexts(paths) ? { roots, paths } : undefined;
    } catch {
      return undefined;
    }
  }

  /** Writes one after another. Never rejects: a disk that is full costs the record, not the tool. */
  write(chat: string, touched: Touched): Promise<void> {
    this.#writing = this.#writing
      .then(() => this.#write(chat, touched))
      .catch((error: unknown) =>
        log("daemon").debug("no record of the repositories of {chat}: {error}", { chat, error }),
      );
    return this.#writing;
  }

  async #write(chat: string, touched: Touched): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const file = this.#toFile(chat);
    const beside = `${file}.${uuid()}`;
    await writeFile(beside, JSON.stringify(touched), { mode: 0o600 });
    await rename(beside, file);
    await this.#cut();
  }

  async #cut(): Promise<void> {
    const names = await readdir(this.#folder);
    if (names.length <= MAX_CHATS) return;
    const aged = await Promise.all(
      names.map(async (name) => ({
        name,
        at: (await stat(join(this.#folder, name)).catch(() => undefined))?.mtimeMs ?? 0,
      })),
    );
    const oldest = aged.sort((one, other) => one.at - other.at).slice(0, names.length - MAX_CHATS);
    await Promise.all(oldest.map(({ name }) => rm(join(this.#folder, name), { force: true })));
  }

  #toFile(chat: string): string {
    return join(this.#folder, `${chat}.json`);
  }
}

const areTexts = (list: unknown): list is string[] =>
  Array.isArray(list) && list.every((one) => typeof one === "string");
