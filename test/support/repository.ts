// A real git repository in a temp folder, created and changed with git itself, independent of the user's git settings.
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const ENVIRONMENT = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_AUTHOR_NAME: "Ann",
  GIT_AUTHOR_EMAIL: "ann@example.com",
  GIT_COMMITTER_NAME: "Ann",
  GIT_COMMITTER_EMAIL: "ann@example.com",
};

export type TestRepository = {
  readonly root: string;
  git(...args: string[]): string;
  /** Writes a file and creates missing folders. */
  write(path: string, content: string | Uint8Array): void;
};

/** Creates a repository in this folder, with the branch `main` and, unless `empty`, one commit with `a.txt`. */
export const makeRepository = (folder: string, { empty = false } = {}): TestRepository => {
  mkdirSync(folder, { recursive: true });
  const root = realpathSync(folder);
  const git = (...args: string[]): string => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...args], {
      cwd: root,
      env: { PATH: process.env.PATH ?? "", HOME: root, ...ENVIRONMENT },
    });
    if (exitCode !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    return stdout.toString();
  };
  const write = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  git("init", "-q", "-b", "main");
  if (!empty) {
    write("a.txt", "one\ntwo\nthree\n");
    git("add", ".");
    git("commit", "-q", "-m", "first");
  }
  return { root, git, write };
};
