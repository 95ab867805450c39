// `slipway dotfiles REPOSITORY`: installs personal settings from a git repository in a workspace. Runs its install script; if there is
// none, links its dotfiles into the home folder (dotfile-links.ts).
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readArguments } from "../arguments.ts";
import { VerbFailure } from "../failure.ts";
import { promptIfMissing, requireConfirmable, requireConfirmation, takeOneWord } from "../missing-arguments.ts";
import { toPlainLine } from "../text.ts";
import type { RunVerb, VerbInput } from "../verb.ts";
import { linkDotfiles, renameToBackup } from "./dotfile-links.ts";
import { explainError } from "./remote.ts";

/** Names of install scripts, in order of precedence. */
const INSTALL_SCRIPTS = [
  "install.sh",
  "install",
  "bootstrap.sh",
  "bootstrap",
  "script/bootstrap",
  "setup.sh",
  "setup",
  "script/setup",
];

export const run: RunVerb = async (input) => {
  // Terraform modules use this spelling.
  const argv = input.argv.map((argument) => (argument === "-y" ? "--yes" : argument));
  const { words, value, has } = readArguments(argv, {
    values: ["branch", "folder", "install-command"],
    switches: ["yes", "replace"],
  });
  const word = takeOneWord(input, words, "the repository with your dotfiles");
  requireConfirmable(input, has.yes, "run or linked");
  return explainError("dotfiles", input, async () => {
    const { HOME } = input.env;
    if (!HOME) throw new VerbFailure("no home directory: set HOME");
    const repository = await promptIfMissing(input, word, "Repository");
    if (repository.startsWith("-"))
      throw new VerbFailure(`${toPlainLine(repository)} is not the URL or path of a repository`);
    if (value.branch?.startsWith("-")) throw new VerbFailure(`${toPlainLine(value.branch)} is not a valid branch name`);
    if (!has.yes)
      await requireConfirmation(
        input,
        `This runs the install script of ${toPlainLine(repository)} here, or links its files. Continue?`,
      );
    const folder = resolve(value.folder ?? join(HOME, ".config", "slipway", "dotfiles"));
    await cloneOrUpdate(input, repository, { folder, branch: value.branch, replaces: has.replace });
    const script = value["install-command"] ?? INSTALL_SCRIPTS.find((name) => isRunnable(join(folder, name)));
    const linked = script === undefined ? linkDotfiles(folder, HOME) : [];
    if (script !== undefined) {
      const command = script === value["install-command"] ? ["sh", "-c", script] : [join(folder, script)];
      await runIn(input, folder, command, `${script} failed`);
    }
    if (has.json) input.print(JSON.stringify({ folder, script: script ?? null, linked }));
    else if (script !== undefined) input.print(`${script} of ${toPlainLine(repository)} was run.`);
    else
      input.print(
        linked.length > 0 ? `Linked ${linked.map(toPlainLine).join(", ")}.` : "Everything is already linked.",
      );
  });
};

type CloneOptions = { readonly folder: string; readonly branch: string | undefined; readonly replaces: boolean };

/** Clones or updates the repository. Local changes are not touched. */
const cloneOrUpdate = async (
  input: VerbInput,
  repository: string,
  { folder, branch, replaces }: CloneOptions,
): Promise<void> => {
  if (!Bun.which("git", { PATH: input.env.PATH ?? "" })) throw new VerbFailure("git is not installed");
  const origin = await readOrigin(folder);
  if (origin !== undefined && origin !== repository) {
    if (!replaces)
      throw new VerbFailure(`${folder} holds ${toPlainLine(origin) || "another repository"}; move it away first`);
    // Links point into this folder, so the new clone must have the same path.
    renameToBackup(folder);
  }
  if (!existsSync(join(folder, ".git"))) {
    if (existsSync(folder) && readdirSync(folder).length > 0) throw new VerbFailure(`${folder} is not empty`);
    mkdirSync(dirname(folder), { recursive: true });
    const branchOptions = branch === undefined ? [] : ["--branch", branch];
    // Cloned into a staging folder first: an interrupted clone must not be mistaken for a complete one.
    const staging = `${folder}.cloning`;
    rmSync(staging, { recursive: true, force: true });
    await runIn(
      input,
      dirname(folder),
      ["git", "clone", ...branchOptions, "--", repository, staging],
      "git clone failed",
    );
    renameSync(staging, folder);
    return;
  }
  // Fetched first, so that a branch newer than the clone is available.
  await runIn(input, folder, ["git", "fetch", "--tags", "origin"], "git fetch failed");
  if (branch !== undefined) await runIn(input, folder, ["git", "checkout", branch, "--"], "git checkout failed");
  // A tag or a commit has no upstream.
  const upstream = await Bun.$`git -C ${folder} rev-parse --abbrev-ref --symbolic-full-name @{upstream}`
    .quiet()
    .nothrow();
  if (upstream.exitCode === 0) {
    await runIn(input, folder, ["git", "merge", "--ff-only", "@{upstream}"], "git merge failed");
  }
};

/** Returns the origin of the clone in this folder; empty if Git does not know it, undefined without a clone. */
const readOrigin = async (folder: string): Promise<string | undefined> =>
  existsSync(join(folder, ".git"))
    ? (await Bun.$`git -C ${folder} remote get-url origin`.quiet().nothrow().text()).trim()
    : undefined;

/** Sends the program's output to standard error: standard output contains only the result. */
const runIn = async (input: VerbInput, cwd: string, command: string[], errorMessage: string): Promise<void> => {
  const env = Object.fromEntries(Object.entries(input.env).filter(([, text]) => text !== undefined)) as Record<
    string,
    string
  >;
  const child = Bun.spawn(command, { cwd, env, signal: input.signal, stdio: ["inherit", "pipe", "inherit"] });
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) input.printError(decoder.decode(chunk, { stream: true }));
  const code = await child.exited;
  if (code !== 0) throw new VerbFailure(`${errorMessage} (exit code ${code})`);
};

const isRunnable = (path: string): boolean => {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && (stat.mode & 0o111) !== 0;
};
