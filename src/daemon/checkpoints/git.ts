// What one folder of the workspace held at a moment, kept by git plumbing in a git directory of its own: the user's repository, its
// index and its branches are only read (rules UN-1 to UN-5). Bounded in files and bytes. Used by checkpoints.ts.
import { access, constants, copyFile, lstat, mkdir, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { conflict } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { GitOptions } from "../git/scan.ts";
import { runCheckpointGit, runGitProgram } from "./run.ts";

const MOST_PATHS = 20_000;
const MOST_BYTES = 256 * 1024 * 1024;
/** Larger files are left out, and left alone. */
const MOST_OF_FILE = 16 * 1024 * 1024;
const SHOWN = 5;

// Bytes are kept as they are, whatever attributes say.
const ATTRIBUTES = "* -text -filter -ident -eol -working-tree-encoding\n";
/** In a folder that is no repository: what programs put beside the work. */
const PLAIN_EXCLUDE = "/.*/\nnode_modules/\n";

type Entry = { readonly path: string; readonly id: string };
/** What must be written and removed to get from one tree to another. */
export type Changes = { readonly write: readonly Entry[]; readonly remove: readonly string[] };

export class ShadowGit {
  readonly root: string;
  readonly isRepository: boolean;
  readonly #options: GitOptions;
  readonly #place: string;
  #tree: string | undefined;

  /** `place`: where its git directory is or will be. */
  constructor(options: GitOptions, at: { root: string; place: string; isRepository: boolean }) {
    this.#options = options;
    this.root = at.root;
    this.isRepository = at.isRepository;
    this.#place = at.place;
  }

  /** The tree of everything that git would not ignore, as it is now. Throws in words when it is too much. */
  async capture(): Promise<string> {
    await this.#prepare();
    const found = [
      ...split(await this.#git(["ls-files", "-z", "--others", "--exclude-standard"])),
      ...split(await this.#git(["diff-files", "-z", "--name-only", "--ignore-submodules=all"])),
    ].filter((path) => !path.endsWith("/"));
    if (found.length === 0 && this.#tree !== undefined) return this.#tree;
    const { kept, gone } = await this.#affordable([...new Set(found)]);
    if (gone.length > 0) {
      await this.#git(["update-index", "--force-remove", "-z", "--stdin"], gone.map((path) => `${path}\0`).join(""));
    }
    if (kept.length > 0) {
      await this.#git(
        ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"],
        kept.map((path) => `${path}\0`).join(""),
      );
    }
    this.#tree = (await this.#git(["write-tree"])).trim();
    return this.#tree;
  }

  async changes(from: string, to: string): Promise<Changes> {
    const raw = split(await this.#git(["diff-tree", "-r", "-z", "--raw", "--no-renames", from, to]));
    const write: Entry[] = [];
    const remove: string[] = [];
    for (let at = 0; at + 1 < raw.length; at += 2) {
      const [, mode = "", , id = "", status = ""] = (raw[at] as string).split(" ");
      const path = raw[at + 1] as string;
      if (mode === "160000" || raw[at]?.startsWith(":160000")) continue;
      if (status.startsWith("D")) remove.push(path);
      else write.push({ path, id });
    }
    return { write, remove };
  }

  /** What stands in the way, in words; nothing is touched. */
  async problems({ write, remove }: Changes): Promise<string[]> {
    const wrong: string[] = [];
    const ids = write.map(({ id }) => `${id}\n`).join("");
    const known = ids === "" ? "" : await this.#git(["cat-file", "--batch-check"], ids);
    if (/ missing$/m.test(known)) wrong.push(`${this.root}: the checkpoint is no longer complete`);
    const going = new Set(remove);
    for (const path of [...write.map((one) => one.path), ...remove]) {
      if (wrong.length >= SHOWN) break;
      const problem = await this.#inTheWay(path, going);
      if (problem !== undefined) wrong.push(`${join(this.root, path)}: ${problem}`);
    }
    return wrong;
  }

  /** Removes and writes; `tree` is where the changes lead. */
  async apply(tree: string, { write, remove }: Changes): Promise<void> {
    for (const path of remove) {
      await rm(join(this.root, path), { force: true });
      for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
        if (
          !(await rmdir(join(this.root, folder)).then(
            () => true,
            () => false,
          ))
        )
          break;
      }
    }
    if (write.length === 0) return;
    const index = join(this.#place, `index-${uuid()}`);
    try {
      await this.#git(["read-tree", tree], undefined, index);
      await this.#git(["checkout-index", "-f", "-z", "--stdin"], write.map(({ path }) => `${path}\0`).join(""), index);
    } finally {
      await rm(index, { force: true });
    }
  }

  /** Undefined when the path can be written or removed. */
  async #inTheWay(path: string, going: ReadonlySet<string>): Promise<string | undefined> {
    const parts = path.split("/");
    for (let count = 1; count < parts.length; count++) {
      const above = parts.slice(0, count).join("/");
      const found = await lstat(join(this.root, above)).catch(() => undefined);
      if (!found) return undefined;
      if (!found.isDirectory() && !going.has(above)) return "what was a folder is something else now";
      if (!found.isDirectory()) return undefined;
    }
    const writable = await access(join(this.root, dirname(path)), constants.W_OK).then(
      () => true,
      () => false,
    );
    if (!writable) return "its folder cannot be written to";
    const here = await lstat(join(this.root, path)).catch(() => undefined);
    if (!here?.isDirectory()) return undefined;
    const inside = await readdir(join(this.root, path), { recursive: true, withFileTypes: true });
    const stays = inside.find(
      (one) => !one.isDirectory() && !going.has(join(one.parentPath, one.name).slice(this.root.length + 1)),
    );
    return stays ? "there is a folder in its place now, with files that nobody keeps" : undefined;
  }

  /** gone: there is something that is no file now. What is too large is in neither, as if it had not changed. */
  async #affordable(paths: readonly string[]): Promise<{ kept: string[]; gone: string[] }> {
    if (paths.length > MOST_PATHS) throw conflict(`${this.root} has more than ${MOST_PATHS} changed files`);
    const kept: string[] = [];
    const gone: string[] = [];
    let bytes = 0;
    for (const path of paths) {
      const found = await lstat(join(this.root, path)).catch(() => undefined);
      if (found && !found.isFile() && !found.isSymbolicLink()) {
        gone.push(path);
        continue;
      }
      if (found && found.size > MOST_OF_FILE) continue;
      bytes += found?.size ?? 0;
      if (bytes > MOST_BYTES) throw conflict(`${this.root} has more than ${MOST_BYTES} bytes of changes`);
      kept.push(path);
    }
    return { kept, gone };
  }

  async #prepare(): Promise<void> {
    if (await isThere(join(this.#place, "info", "ready"))) return;
    await rm(this.#place, { recursive: true, force: true });
    await mkdir(this.#place, { recursive: true, mode: 0o700 });
    const [format = "sha1", objects = "", index = "", exclude = ""] = this.isRepository
      ? (
          await this.#own([
            "rev-parse",
            "--path-format=absolute",
            "--show-object-format",
            ...pathsOf("objects", "index", "info/exclude"),
          ])
        ).split("\n")
      : [];
    await this.#git(["init", "-q", "--bare", `--object-format=${format}`, this.#place]);
    await this.#git(["config", "gc.auto", "0"]);
    await mkdir(join(this.#place, "info"), { recursive: true });
    await writeFile(join(this.#place, "info", "attributes"), ATTRIBUTES);
    if (!this.isRepository) await writeFile(join(this.#place, "info", "exclude"), PLAIN_EXCLUDE);
    if (exclude !== "") await copyFile(exclude, join(this.#place, "info", "exclude")).catch(() => {});
    // What the repository has already need not be kept twice.
    if (objects !== "") await writeFile(join(this.#place, "objects", "info", "alternates"), `${objects}\n`);
    // What its index knows need not be read again, unless files are stored other than they look.
    const isPlain = !(await isThere(join(this.root, ".gitattributes")));
    if (
      index !== "" &&
      isPlain &&
      (await copyFile(index, join(this.#place, "index")).then(
        () => true,
        () => false,
      ))
    ) {
      await this.#git(["write-tree"]).catch(() => rm(join(this.#place, "index"), { force: true }));
    }
    await writeFile(join(this.#place, "info", "ready"), "");
  }

  /** In the user's own repository, which is only read. */
  #own(args: readonly string[]): Promise<string> {
    const command = ["git", "--no-optional-locks", ...args];
    return runGitProgram(this.#options, { command, root: this.root, env: {} });
  }

  /** In the private one, with the folder as its work tree. */
  #git(args: readonly string[], input?: string, index?: string): Promise<string> {
    const more = { ...(input === undefined ? {} : { input }), ...(index === undefined ? {} : { index }) };
    return runCheckpointGit(this.#options, { args, place: this.#place, root: this.root, ...more });
  }
}

const pathsOf = (...names: string[]): string[] => names.flatMap((name) => ["--git-path", name]);
const split = (text: string): string[] => text.split("\0").filter((part) => part !== "");
const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
