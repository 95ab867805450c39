// Accidents that can happen to a workspace's files, with real git in real folders. After each accident, the checkpoint restores all files
// that it guarantees, whatever happened to the user's repositories.
import { expect } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { Checkpoints } from "#src/daemon/checkpoints/checkpoints.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { makeRepository, type TestRepository } from "#test/support/repository.ts";
import { tempDirectory } from "#test/support/server.ts";

const CHAT_ID = "11111111-1111-4111-8111-111111111111";
const clock = systemClock;
const LARGE_BYTES = 17 * 1024 * 1024;

type World = Disposable & {
  readonly home: string;
  readonly repository: TestRepository;
  readonly checkpoints: Checkpoints;
  /** The checkpoints of another daemon for the same home. */
  readonly otherCheckpoints: Checkpoints;
  sh(script: string): void;
};

/**
 * Creates a home with a repository `u`, which has a submodule `u/lib`, an ignored clone, ignored files and changes of every kind, and with
 * a plain folder.
 */
const openWorld = (): World => {
  const temp = tempDirectory();
  const root = realpathSync(temp.path);
  const home = join(root, "home");
  const library = makeRepository(join(root, "library"));
  const repository = makeRepository(join(home, "u"));
  const { write, git } = repository;
  write("src/deep/code.txt", "committed\n");
  write(".gitignore", "ignored\nbuild/\nclones/\n");
  git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.root, "lib");
  git("add", ".");
  git("commit", "-q", "-m", "work");
  write("a.txt", "changed and not committed\n");
  write("new.txt", "untracked\n");
  write("tool.sh", "#!/bin/sh\n");
  write("key", "private\n");
  write("ignored", "not captured\n");
  write("build/out", "made\n");
  write("lib/a.txt", "changed in the submodule\n");
  chmodSync(join(repository.root, "tool.sh"), 0o755);
  chmodSync(join(repository.root, "key"), 0o600);
  symlinkSync("a.txt", join(repository.root, "link"));
  makeRepository(join(repository.root, "clones", "other")).write("a.txt", "changed in the clone\n");
  mkdirSync(join(home, "plain", "deep"), { recursive: true });
  writeFileSync(join(home, "plain", "deep", "notes.txt"), "by hand\n");
  writeFileSync(join(home, "z"), "before\n");
  const env = { PATH: process.env.PATH ?? "", HOME: home };
  const groups = new ProcessGroups({ clock: clock, agent_id: "t" });
  const options = { clock: clock, env, groups, state: join(root, "state"), folder: () => home };
  const [checkpoints, otherCheckpoints] = [new Checkpoints(options), new Checkpoints(options)];
  const sh = (script: string): void => {
    const identity =
      'git() { command git -c user.name=Ann -c user.email=ann@example.com -c init.defaultBranch=main "$@"; };';
    const { exitCode, stderr } = Bun.spawnSync(["bash", "-ec", `${identity} ${script}`], { cwd: home, env });
    if (exitCode !== 0) throw new Error(`${script}: ${stderr}`);
  };
  return { home, repository, checkpoints, otherCheckpoints, sh, [Symbol.dispose]: () => temp[Symbol.dispose]() };
};

/** The files of that home that every checkpoint restores. */
const GUARANTEED = {
  z: "before\n",
  "plain/deep/notes.txt": "by hand\n",
  "u/a.txt": "changed and not committed\n",
  "u/src/deep/code.txt": "committed\n",
  "u/.gitignore": "ignored\nbuild/\nclones/\n",
  "u/new.txt": "untracked\n",
  "u/tool.sh": "#!/bin/sh\n",
  "u/key": "private\n",
  "u/lib/a.txt": "changed in the submodule\n",
  "u/clones/other/a.txt": "changed in the clone\n",
};

const readTexts = (home: string, paths: readonly string[]): Record<string, string | undefined> =>
  Object.fromEntries(
    paths.map((path) => [path, existsSync(join(home, path)) ? readFileSync(join(home, path), "utf8") : undefined]),
  );

type Accident = {
  readonly script: string;
  /** Files that are not in the checkpoint: their content if they stay, `undefined` if the restore removes them. */
  readonly others?: Record<string, string | undefined>;
  /** Files that the response must report as not restored. */
  readonly unrestored?: readonly string[];
};

const ACCIDENTS: Record<string, Accident> = {
  "a repository is removed": {
    script: "rm -rf u; echo b > z",
    unrestored: ["the repository in", "u/ignored (ignored by git)", "u/build (ignored by git)"],
  },
  "a repository is moved": {
    script: "mv u v; echo b > z",
    others: { "v/ignored": "not captured\n" },
    unrestored: ["u/.git"],
  },
  "a repository loses its .git": {
    script: "rm -rf u/.git; echo b > u/a.txt; echo b > u/more",
    others: { "u/ignored": "not captured\n", "u/more": undefined },
    unrestored: ["u/.git"],
  },
  "a repository is created again over its files": {
    script: "rm -rf u/.git; git init -q u; echo b > u/a.txt",
    others: { "u/ignored": "not captured\n" },
    // The submodule's repository was inside it.
    unrestored: ["u/lib/.git"],
  },
  "a repository is replaced by a new one": {
    script: "rm -rf u; git init -q u; echo b > u/b",
    others: { "u/b": undefined },
    unrestored: ["u/ignored"],
  },
  "history is rewritten and collected": {
    script:
      "cd u; git add -A; git commit -qm x; git commit -q --amend -m y --allow-empty; git checkout -q --orphan o; git rm -rqf --cached .; echo n > a.txt; git add a.txt; git commit -qm n; git branch -qD main; git reflog expire --expire=now --all; git gc -q --prune=now",
    others: { "u/ignored": "not captured\n" },
  },
  "the object store is emptied": { script: "rm -rf u/.git/objects/*; echo b > u/src/deep/code.txt", others: {} },
  "a submodule is removed": { script: "rm -rf u/lib", others: {} },
  "a submodule is deinitialized": {
    script: "cd u; git submodule --quiet deinit -f lib; rm -rf .git/modules/lib",
    unrestored: ["u/lib/.git"],
  },
  "everything is cleaned": { script: "cd u; git checkout -q -f .; git clean -fdxq", unrestored: ["u/ignored"] },
  "everything is reset": { script: "cd u; git add -A; git reset -q --hard; git stash clear" },
  "a repository becomes a file": { script: "rm -rf u; echo file > u", unrestored: ["u/.git"] },
  "a folder becomes a link": {
    script: "mkdir other; cp -r plain/deep other; rm -rf plain; ln -s other plain",
    others: { "other/deep/notes.txt": undefined },
  },
  "a file becomes a folder": { script: "rm u/a.txt z; mkdir -p u/a.txt/x z; echo 1 > u/a.txt/x/y; echo 1 > z/y" },
  "a plain folder is removed": { script: "rm -rf plain" },
  "a plain folder becomes a repository": {
    script: "cd plain; git init -q; git add .; git commit -qm x; echo b > deep/notes.txt; echo c > deep/more",
    others: { "plain/deep/more": undefined },
  },
  "the ignore rules are removed": {
    script: "rm u/.gitignore; echo b > u/made",
    others: { "u/ignored": "not captured\n", "u/build/out": "made\n", "u/made": undefined },
  },
  "everything becomes ignored": {
    script: "echo '*' > u/.gitignore; echo b > u/src/deep/code.txt; rm u/new.txt",
    others: { "u/ignored": "not captured\n" },
  },
  "permissions and links are changed": { script: "chmod 644 u/tool.sh u/key; rm u/link; ln -s nowhere u/link" },
  "a thousand files are created": {
    script: "mkdir u/many; for i in $(seq 1 1200); do echo $i > u/many/$i; done; rm u/src/deep/code.txt",
    others: { "u/many/7": undefined },
  },
  "a clone in an ignored folder is removed": { script: "rm -rf u/clones", unrestored: ["u/clones/other/.git"] },
  // The cases below were reported publicly.
  "ignore rules are added, and files that they match are created (cline/cline#14367)": {
    script: "echo data/ >> u/.gitignore; mkdir u/data; echo precious > u/data/db",
    others: { "u/data/db": "precious\n" },
  },
  "a folder becomes a link to another folder with the same file names (Zoo-Code-Org/Zoo-Code#1413)": {
    script: "mkdir -p ../outside/deep; echo theirs > ../outside/deep/notes.txt; rm -rf plain; ln -s ../outside plain",
    others: { "../outside/deep/notes.txt": "theirs\n" },
  },
  "files of a folder without git are changed and created (anomalyco/opencode#38672)": {
    script: "echo b > plain/deep/notes.txt; echo c > plain/more",
    others: { "plain/more": undefined },
  },
  "everything in the home is removed": { script: "rm -rf ./*", unrestored: ["u/.git", "u/ignored"] },
};

/** Accidents that leave `.git` folders that git cannot use. */
const BROKEN_REPOSITORIES = {
  "a removed worktree": "mkdir x; echo 'gitdir: /nonexistent' > x/.git",
  "an empty .git": "mkdir -p x/.git",
  "an interrupted clone": "git init -q x; rm -rf x/.git/objects",
  "a repository without a commit (anomalyco/opencode#26893)": "git init -q x",
  "a damaged HEAD": "git init -q x; echo zzz > x/.git/HEAD",
  "a .git folder in the home": "mkdir x; mkdir .git",
};

for (const [name, script] of Object.entries(BROKEN_REPOSITORIES)) {
  testNeeding([needs.git], `[UN-1][UN-11] ${name} does not prevent checkpoints of files`, async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    sh(`${script}; mkdir x/deep; echo mine > x/deep/file`);
    expect(await checkpoints.take({ chat_id: CHAT_ID, message_id: 1 })).toEqual({ problems: [] });
    sh("rm -rf x u/src; echo b > z");
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    const expected = { ...GUARANTEED, "x/deep/file": "mine\n" };
    expect(readTexts(home, Object.keys(expected))).toEqual(expected);
  });
}

testNeeding(
  [needs.git],
  "[UN-6][UN-13] keeps newly ignored files, moves files created since aside, and tolerates a broken Git configuration",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 1 });
    sh("echo later > u/secret.env; echo made > u/made; echo data > results");
    // The second checkpoint contains a file that is ignored afterwards.
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 2 });
    sh("echo secret.env >> u/.git/info/exclude; echo '[broken' > .gitconfig; rm -rf u/src");
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    const afterRestore = { "u/made": undefined, results: undefined, "u/secret.env": "later\n" };
    expect(readTexts(home, Object.keys({ ...GUARANTEED, ...afterRestore }))).toEqual({
      ...GUARANTEED,
      ...afterRestore,
    });
    const removedFolder = join(home, "..", "state", "removed");
    const movedAside = [...new Bun.Glob("**/{made,results}").scanSync({ cwd: removedFolder })].map((path) =>
      path.split("/").at(-1),
    );
    expect(movedAside.sort()).toEqual(["made", "results"]);
    expect(await checkpoints.take({ chat_id: CHAT_ID, message_id: 3 })).toEqual({ problems: [] });
  },
);

testNeeding(
  [needs.git],
  "[UN-1][UN-6] restores files and folders whose names are special for a shell or Git",
  async () => {
    using world = openWorld();
    const { checkpoints, home } = world;
    const specialNames = [
      "-rf",
      "a b",
      "new\nline",
      "tab\there",
      "*",
      "[x]?",
      "quo\"te'",
      "back\\slash",
      ":(top)x",
      "#hash",
      "!not",
      "\u00e4\u0308\u202f",
      "trailing ",
    ];
    for (const name of specialNames) {
      const folder = makeRepository(join(home, name), { empty: true });
      folder.write(name, `file ${name}`);
      folder.write(`deep/${name}/x`, `deep ${name}`);
      writeFileSync(join(home, "plain", name), `plain ${name}`);
    }
    const paths = specialNames.flatMap((name) => [`${name}/${name}`, `${name}/deep/${name}/x`, `plain/${name}`]);
    const before = readTexts(home, paths);
    expect((await checkpoints.take({ chat_id: CHAT_ID, message_id: 1 })).problems).toEqual([]);
    for (const name of specialNames) rmSync(join(home, name), { recursive: true });
    rmSync(join(home, "plain"), { recursive: true });
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    expect(readTexts(home, paths)).toEqual(before);
    // The folders are no longer repositories, but none of their files count as new.
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    expect(readTexts(home, paths)).toEqual(before);
  },
);

testNeeding(
  [needs.git],
  "[UN-4][UN-5][UN-12] checkpoint and restore report files that are too large or were not captured in time",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh, repository } = world;
    writeFileSync(join(repository.root, "large"), new Uint8Array(LARGE_BYTES));
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 1 });
    sh("rm -rf u plain");
    const { left_out } = await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    expect(left_out.join("\n")).toContain("u/large (it is larger than 16 MiB)");
    // A large file that exists is left alone.
    sh("head -c 18000000 /dev/zero > u/large; echo b > z");
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    expect(statSync(join(repository.root, "large")).size).toBe(18_000_000);
    expect(readTexts(home, Object.keys(GUARANTEED))).toEqual(GUARANTEED);
    // A file that was too large and is small now is also left alone, because it is not new.
    sh("echo small > u/large");
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    expect(readTexts(home, ["u/large"])).toEqual({ "u/large": "small\n" });

    const late = await checkpoints.take({ chat_id: CHAT_ID, message_id: 2, within_ms: 1 });
    expect(late.problems).toEqual([expect.stringContaining("still being made")]);
    await checkpoints.waitUntilIdle();
    // Tools may already have changed files when it was complete, so it is not usable.
    expect(await checkpoints.take({ chat_id: CHAT_ID, message_id: 2 })).toEqual({ problems: late.problems ?? [] });
    const refused = await checkpoints.restore({ chat_id: CHAT_ID, message_id: 2 }).catch((error) => error);
    expect([refused.kind, refused.message]).toEqual(["conflict", expect.stringContaining("still being made")]);
    expect(await checkpoints.take({ chat_id: CHAT_ID, message_id: 3 })).toEqual({ problems: [] });
  },
);

testNeeding(
  [needs.git],
  "[UN-1][UN-2] captures files as they are on disk, even if Git converts or hides them or has conflicts",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    sh(`git init -q w; cd w
      printf '*.crlf text eol=crlf\n*.rot filter=rot\n' > .gitattributes
      git config filter.rot.clean 'tr a-z n-za-m'; git config filter.rot.smudge 'tr a-z n-za-m'
      printf 'one\ntwo\n' > t.crlf; echo hello > s.rot; echo base > c; echo kept > assumed; echo kept > skipped
      git add .; git commit -qm one; rm t.crlf s.rot; git checkout -q .
      git update-index --assume-unchanged assumed; git update-index --skip-worktree skipped
      git checkout -qb side; echo side > c; git commit -qam side; git checkout -q main; echo main > c; git commit -qam main
      git merge -q side >/dev/null || true; echo local > assumed; echo local > skipped; echo later > intended; git add -N intended`);
    const paths = ["t.crlf", "s.rot", "c", "assumed", "skipped", "intended"].map((path) => `w/${path}`);
    const before = readTexts(home, paths);
    expect(before["w/t.crlf"]).toBe("one\r\ntwo\r\n");
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 1 });
    sh("rm -rf w");
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    expect(readTexts(home, paths)).toEqual(before);
  },
);

testNeeding(
  [needs.git],
  "[UN-2] cline/cline#5598, cline/cline#1313, cline/cline#9317: checkpoints, even abandoned ones, leave repositories and submodules unchanged",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    const describeRepositories =
      "for one in u u/lib u/clones/other; do git -C $one status --porcelain; git -C $one rev-parse HEAD; done";
    const listTree = (): string => {
      sh(`(${describeRepositories}; find . -name '.git*' -not -path '*/.git/*' | sort) > ../seen`);
      return readFileSync(join(home, "..", "seen"), "utf8");
    };
    const before = listTree();
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 1, within_ms: 1 });
    expect(listTree()).toBe(before);
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 2 });
    await checkpoints.waitUntilIdle();
    expect(listTree()).toBe(before);
  },
);

testNeeding(
  [needs.git],
  "[UN-6] anomalyco/opencode#10287, anomalyco/opencode#3148: restores the files of the message, even after commits and next to another daemon's checkpoints",
  async () => {
    using world = openWorld();
    const { checkpoints, otherCheckpoints, home, sh } = world;
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 1 });
    sh("cd u; echo newer > src/deep/code.txt; echo more > more; git add -A; git commit -qm newer; echo newest > a.txt");
    const files = { "u/a.txt": "newest\n", "u/src/deep/code.txt": "newer\n", "u/more": "more\n" };
    const checkpointsTaken = [
      checkpoints.take({ chat_id: CHAT_ID, message_id: 2 }),
      otherCheckpoints.take({ chat_id: CHAT_ID, message_id: 3 }),
    ];
    expect(await Promise.all(checkpointsTaken)).toEqual([{ problems: [] }, { problems: [] }]);
    const missing = await checkpoints.restore({ chat_id: CHAT_ID, message_id: 99 }).catch((error) => error);
    expect(missing.kind).toBe("not_found");
    expect(readTexts(home, Object.keys(files))).toEqual(files);
    sh("cd u; echo bad > a.txt; rm src/deep/code.txt more; echo bad > made");
    await otherCheckpoints.restore({ chat_id: CHAT_ID, message_id: 2 });
    expect(readTexts(home, [...Object.keys(files), "u/made"])).toEqual({ ...files, "u/made": undefined });
    // This daemon's checkpoint also contains a change that the other daemon captured first.
    sh("cd u; echo last > a.txt; chmod 600 a.txt");
    await otherCheckpoints.take({ chat_id: CHAT_ID, message_id: 4 });
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 5 });
    sh("cd u; echo bad > a.txt; chmod 644 a.txt");
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 5 });
    expect(readTexts(home, ["u/a.txt"])).toEqual({ "u/a.txt": "last\n" });
  },
);

testNeeding(
  [needs.git],
  "[UN-5] cline/cline#4388: a checkpoint that was killed midway does not block later ones",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    await checkpoints.take({ chat_id: CHAT_ID, message_id: 1 });
    await checkpoints.waitUntilIdle();
    const stateFolder = join(home, "..", "state", "folders");
    sh(
      `for one in ${stateFolder}/*; do echo half > $one/index.lock; touch -d '10 minutes ago' $one/index.lock; done; echo b > z`,
    );
    expect(await checkpoints.take({ chat_id: CHAT_ID, message_id: 2 })).toEqual({ problems: [] });
    sh("echo c > z");
    await checkpoints.restore({ chat_id: CHAT_ID, message_id: 2 });
    expect(readTexts(home, ["z"])).toEqual({ z: "b\n" });
  },
);

for (const [name, { script, others = {}, unrestored = [] }] of Object.entries(ACCIDENTS)) {
  testNeeding([needs.git], `[UN-1][UN-3][UN-6][UN-11] the files are restored when ${name}`, async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    expect(await checkpoints.take({ chat_id: CHAT_ID, message_id: 1 })).toEqual({ problems: [] });
    await checkpoints.waitUntilIdle();
    sh(script);
    const { left_out } = await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 });
    const expected = { ...GUARANTEED, ...others };
    expect(readTexts(home, Object.keys(expected))).toEqual(expected);
    expect(readlinkSync(join(home, "u/link"))).toBe("a.txt");
    const modes = ["tool.sh", "key"].map((path) => statSync(join(home, "u", path)).mode & 0o777);
    expect(modes).toEqual([0o755, 0o600]);
    for (const part of unrestored) expect(left_out.join("\n")).toContain(part);
    if (unrestored.length === 0) expect(left_out).toEqual([]);
  });
}
