// `slipway dotfiles REPOSITORY`: brings one's own settings into a workspace, from a git repository. Its install script is run; without one
// its dotfiles are linked into the home folder, and what was there before is kept beside them.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { readArguments } from "../arguments.ts";
import { confirmable, mustAgree, oneWord, orAsked } from "../asked.ts";
import { VerbFailure } from "../failure.ts";
import { plain } from "../text.ts";
import { EXIT, type RunVerb, type VerbInput } from "../verb.ts";
import { forPeople } from "./remote.ts";

/** Looked for in this order. */
const SCRIPTS = [
  "install.sh",
  "install",
  "bootstrap.sh",
  "bootstrap",
  "script/bootstrap",
  "setup.sh",
  "setup",
  "script/setup",
];
const NOT_LINKED = new Set([".git", ".gitignore", ".gitmodules", ".gitattributes", ".github", ".gitlab-ci.yml"]);

export const run: RunVerb = async (input) => {
  // Modules of the ecosystem's registry say it so.
  const argv = input.argv.map((argument) => (argument === "-y" ? "--yes" : argument));
  const { words, value, has } = readArguments(argv, { values: ["branch", "folder"], switches: ["yes"] });
  const word = oneWord(input, words, "the repository with your dotfiles");
  confirmable(input, has.yes, "run or linked");
  return forPeople("dotfiles", input, async () => {
    const { HOME } = input.env;
    if (!HOME) throw new VerbFailure("there is no home folder: set HOME");
    const repository = await orAsked(input, word, "Repository");
    if (repository.startsWith("-")) throw new VerbFailure(`${plain(repository)} is no repository`);
    if (!has.yes) await mustAgree(input, `What ${plain(repository)} brings will be run or linked here. Continue?`);
    const folder = value.folder ?? join(HOME, ".config", "slipway", "dotfiles");
    await fetched(input, repository, folder, value.branch);
    const script = SCRIPTS.find((name) => isRunnable(join(folder, name)));
    const linked = script === undefined ? linkAll(folder, HOME) : [];
    if (script !== undefined) await runIn(input, folder, [join(folder, script)], `${script} has failed`);
    if (has.json) input.print(JSON.stringify({ folder, script: script ?? null, linked }));
    else if (script !== undefined) input.print(`${script} of ${plain(repository)} was run.`);
    else input.print(linked.length > 0 ? `Linked ${linked.map(plain).join(", ")}.` : "All is linked already.");
    return EXIT.ok;
  });
};

/** A copy of the repository, new or brought up to date; changes that were made in it are left alone. */
const fetched = async (
  input: VerbInput,
  repository: string,
  folder: string,
  branch: string | undefined,
): Promise<void> => {
  if (!Bun.which("git")) throw new VerbFailure("git is not here");
  if (!existsSync(join(folder, ".git"))) {
    if (existsSync(folder) && readdirSync(folder).length > 0) throw new VerbFailure(`${folder} is not empty`);
    mkdirSync(dirname(folder), { recursive: true });
    const at = branch === undefined ? [] : ["--branch", branch];
    await runIn(input, dirname(folder), ["git", "clone", ...at, "--", repository, folder], "git clone has failed");
    return;
  }
  const known = (await Bun.$`git -C ${folder} remote get-url origin`.quiet().nothrow().text()).trim();
  if (known !== repository)
    throw new VerbFailure(`${folder} holds ${plain(known) || "another repository"}; take it away first`);
  if (branch !== undefined) await runIn(input, folder, ["git", "checkout", branch, "--"], "git checkout has failed");
  await runIn(input, folder, ["git", "pull", "--ff-only"], "git pull has failed");
};

/** What the program says goes to standard error: standard output is the result alone. */
const runIn = async (input: VerbInput, cwd: string, command: string[], failed: string): Promise<void> => {
  const env = Object.fromEntries(Object.entries(input.env).filter(([, text]) => text !== undefined)) as Record<
    string,
    string
  >;
  const child = Bun.spawn(command, { cwd, env, signal: input.signal, stdio: ["inherit", "pipe", "inherit"] });
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) input.printError(decoder.decode(chunk, { stream: true }));
  const code = await child.exited;
  if (code !== 0) throw new VerbFailure(`${failed} (exit code ${code})`);
};

const isRunnable = (path: string): boolean => {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && (stat.mode & 0o111) !== 0;
};

/** Links each dotfile of the folder; answers the names of those that were not linked yet. */
const linkAll = (folder: string, home: string): string[] => {
  const names = readdirSync(folder).filter((name) => name.startsWith(".") && !NOT_LINKED.has(name));
  return names.sort().filter((name) => {
    const [from, to] = [join(folder, name), join(home, name)];
    const there = lstatSync(to, { throwIfNoEntry: false });
    if (there?.isSymbolicLink() && readlinkSync(to) === from) return false;
    if (there) renameSync(to, freeName(`${to}.before-dotfiles`));
    symlinkSync(from, to);
    return true;
  });
};

/** What was kept before stays, too. */
const freeName = (path: string): string => {
  for (let i = 0; ; i++) {
    const name = i === 0 ? path : `${path}.${i}`;
    if (!lstatSync(name, { throwIfNoEntry: false })) return name;
  }
};
