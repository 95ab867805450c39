// Tracks the folders in which a coding agent's shell may be: some agents keep the folder of a command for the next one without saying so.
// Rules and people decide about a command in each of them.
import { posix } from "node:path";
import { isSameFolder } from "#base/system/same-folder.ts";
import { type AgentShell, type AgentToolCall, toChatTool } from "#src/acp/calls.ts";
import { UNKNOWN_FOLDER } from "#src/tools/permission-mode.ts";
import { findFolderChanges } from "./folder-changes.ts";

/** More folders, or a longer one, count as unknown. */
const MAX_FOLDERS = 16;
const MAX_FOLDER_LENGTH = 1_000;
/** Calls whose folders can still be forgotten. */
const MAX_CALLS = 100;

type Call = {
  /** Where the call starts, if it says so. */
  readonly cwd: string | undefined;
  readonly targets: readonly string[];
  /** True if it begins with a change to the shell's first folder, which surely exists. */
  readonly isReset: boolean;
  readonly hasHooks: boolean;
};
/** `folders`: without the folder in which the shell started. */
type State = { readonly folders: ReadonlySet<string>; readonly hasHooks: boolean };

export class ShellFolders implements AgentShell {
  readonly folder: string;
  /** Changes of the folder, by call. */
  readonly #calls = new Map<string, Call>();
  #earlier: State = { folders: new Set(), hasHooks: false };
  readonly #refused = new Set<string>();

  /** `folder`: where the agent's shell starts. */
  constructor(folder: string) {
    this.folder = folder;
  }

  /** Records a call that may run, or has run. */
  record(call: AgentToolCall): void {
    const { id, kind, content } = call;
    // A terminal has a folder of its own.
    if (kind !== "execute" || this.#refused.has(id) || content.some(({ type }) => type === "terminal")) return;
    const { command, workdir } = toChatTool(call).args;
    const isReset = workdir === undefined && isSameFolder(findFirstFolder(String(command)) ?? "-", this.folder);
    const cwd = typeof workdir === "string" && !isSameFolder(workdir, this.folder) ? workdir : undefined;
    const { targets, hasHooks } = findFolderChanges(String(command));
    this.#calls.set(id, {
      cwd,
      targets: targets.length > MAX_FOLDERS ? [UNKNOWN_FOLDER] : targets,
      isReset,
      hasHooks,
    });
    if (this.#calls.size <= MAX_CALLS) return;
    this.#earlier = this.#join("");
    this.#calls.clear();
  }

  /** Forgets a call that does not run. */
  refuse(id: string): void {
    this.#calls.delete(id);
    this.#refused.add(id);
  }

  listKeptFolders(call_id: string, command: string): readonly string[] {
    const { folders, hasHooks } = this.#join(call_id);
    if (hasHooks) return [UNKNOWN_FOLDER];
    return findFirstFolder(command) === undefined ? [...folders] : [];
  }

  #join(except: string): State {
    let { folders, hasHooks } = this.#earlier;
    let isLater = false;
    for (const [id, call] of this.#calls) {
      // A later call may not have run yet.
      if (call.isReset && !isLater && id !== except) folders = new Set();
      if (id === except) isLater = true;
      else {
        folders = this.#add(folders, call);
        hasHooks ||= call.hasHooks;
      }
    }
    return { folders, hasHooks };
  }

  /** Adds each target of the call, below each folder in which the shell may be by then. */
  #add(before: State["folders"], { cwd, targets }: Call): State["folders"] {
    let reached = cwd === undefined ? before : new Set<string>();
    for (const target of targets) {
      const below = [cwd ?? "", ...reached].flatMap((base) => this.#enter(base, target));
      reached = limit(new Set([...reached, ...below]));
    }
    return cwd === undefined ? reached : limit(new Set([...before, ...reached]));
  }

  /** Returns where `cd target` leads from the folder `base`, unless that is where the shell started. */
  #enter(base: string, target: string): readonly string[] {
    const isWhole = base === "" || /^[/~]/.test(target) || target === UNKNOWN_FOLDER;
    // The same change again fails where folders contain none of their own name; else the list would grow with each repetition.
    if (!isWhole && !leadsUp(target) && `/${base}/`.includes(`/${shorten(target)}/`)) return [];
    if (!isWhole && base === UNKNOWN_FOLDER) return [UNKNOWN_FOLDER];
    const path = isWhole ? target : shorten(`${base}/${target}`);
    if (path.length > MAX_FOLDER_LENGTH) return [UNKNOWN_FOLDER];
    return isSameFolder(path, this.folder) ? [] : [path];
  }
}

const limit = (folders: ReadonlySet<string>): ReadonlySet<string> =>
  folders.size > MAX_FOLDERS ? new Set([UNKNOWN_FOLDER]) : folders;

/** Removes steps without a meaning. Paths with `..` are kept, because a symbolic link may precede it. */
const shorten = (path: string): string => (leadsUp(path) ? path : posix.normalize(`${path}/`).slice(0, -1));

const leadsUp = (path: string): boolean => path.split("/").includes("..");

/** Returns the whole path of a folder to which a text changes first, if it runs nothing when that fails. */
const findFirstFolder = (command: string): string | undefined => {
  const [, folder, rest = ""] =
    /^\s*cd\s+("\/[^"$`\\]*"|'\/[^']*'|\/[\w@%+=:,./-]*)\s*(?:&&([\s\S]*))?$/.exec(command) ?? [];
  if (folder === undefined || /[;&\n]|\|\|/.test(rest.replaceAll("&&", "").replace(/[<>]&|&>/g, ""))) return undefined;
  return folder.replace(/^["']|["']$/g, "");
};
