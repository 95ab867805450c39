// The daemon's reports about repositories, with real git: content, truncation, scan times and notifications.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import type { GitMessage } from "#schema/agents/git-message.ts";
import { GitRecord } from "#src/daemon/git/record.ts";
import { findCommandFolders, findRepository } from "#src/daemon/git/repositories.ts";
import { loadReference, scanRepository } from "#src/daemon/git/scan.ts";
import { GitWatches } from "#src/daemon/git/watch.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { makeRepository } from "#test/support/repository.ts";

const folder = { path: "" };
beforeAll(() => {
  folder.path = realpathSync(mkdtempSync(join(tmpdir(), "slipway-git-")));
});
afterAll(() => rmSync(folder.path, { recursive: true, force: true }));

const env = { PATH: process.env.PATH ?? "", GIT_CONFIG_GLOBAL: "/dev/null" };
const clock = systemClock;
const options = { clock, env, groups: new ProcessGroups({ clock, agent_id: "t" }) };
const CHAT = "11111111-1111-4111-8111-111111111111";
const OTHER = "22222222-2222-4222-8222-222222222222";
const git = (title: string, run: () => Promise<void>) => testNeeding([needs.git], title, run);

describe("a repository", () => {
  git(
    "[GS-2] is reported with its branch, its origin without credentials, and all changes since the last commit, tracked and untracked",
    async () => {
      const at = makeRepository(join(folder.path, "shown"));
      at.git("remote", "add", "origin", "https://me:secret@example.com/team/repo.git");
      at.git("checkout", "-q", "-b", "feature/x");
      at.write(".gitignore", "ignored\n");
      at.write("a.txt", "one\n2\nthree\n");
      at.write("ignored", "not shown");
      at.write("sub/new file.txt", "hello\nworld");
      at.write("bytes", new Uint8Array([0, 1, 2]));
      at.write("staged.txt", "staged\n");
      at.git("add", "staged.txt");
      symlinkSync("a.txt", join(at.root, "link"));
      const { branch, remote_origin, unified_diff } = await scanRepository(options, at.root);
      expect([branch, remote_origin]).toEqual(["feature/x", "https://example.com/team/repo.git"]);
      expect(unified_diff).toContain("-two\n+2\n");
      expect(unified_diff).toContain("+++ b/staged.txt\n@@ -0,0 +1 @@\n+staged\n");
      expect(unified_diff).toContain("Binary files /dev/null and b/bytes differ\n");
      expect(unified_diff).toContain("new file mode 120000\n");
      expect(unified_diff).toContain("+hello\n+world\n\\ No newline at end of file\n");
      expect(unified_diff).not.toContain("not shown");
      // The diff can be applied: git creates the same files from it.
      const other = makeRepository(join(folder.path, "applied"));
      const withoutBytes = unified_diff
        .split(/^(?=diff --git )/m)
        .filter((one) => !one.includes("b/bytes"))
        .join("");
      writeFileSync(join(folder.path, "patch"), withoutBytes);
      other.git("apply", join(folder.path, "patch"));
      expect(readdirSync(other.root).sort()).toEqual([".git", ".gitignore", "a.txt", "link", "staged.txt", "sub"]);
      at.git("add", ".");
      at.git("commit", "-q", "-m", "second");
      expect((await scanRepository(options, at.root)).unified_diff).toBe("");
      at.git("checkout", "-q", "--detach");
      expect((await scanRepository(options, at.root)).branch).toBe("");
    },
  );

  git(
    "[GS-2] without a commit is compared with an empty tree; scanning writes nothing and runs no program that the repository configures",
    async () => {
      const at = makeRepository(join(folder.path, "fresh"), { empty: true });
      at.write("staged", "one\n");
      at.git("add", ".");
      at.write("staged", "two\n");
      at.git("config", "core.fsmonitor", `touch ${join(folder.path, "ran")}`);
      at.git("config", "diff.external", `touch ${join(folder.path, "ran")}`);
      const before = Bun.file(join(at.root, ".git/index")).lastModified;
      const { branch, unified_diff } = await scanRepository(options, at.root);
      expect([branch, unified_diff.includes("+two\n")]).toEqual(["main", true]);
      expect(Bun.file(join(at.root, ".git/index")).lastModified).toBe(before);
      expect(readdirSync(folder.path)).not.toContain("ran");
    },
  );

  git(
    "[GS-3] large files and diffs are replaced with stubs, and a diff that is too large as a whole with a notice",
    async () => {
      const at = makeRepository(join(folder.path, "large"));
      at.write("a.txt", "changed line\n".repeat(30_000));
      at.write("huge.txt", "x".repeat(2 * 1024 * 1024 + 1));
      at.write("new.txt", "new line\n".repeat(40_000));
      at.write("small.txt", "small\n");
      const { unified_diff } = await scanRepository(options, at.root);
      expect(unified_diff.match(/\(the change of this file is larger than 256 KiB/g)).toHaveLength(2);
      expect(unified_diff).toContain("(the file is larger than 2 MiB and is not shown)");
      expect(unified_diff).toContain("+small\n");
      expect(unified_diff.length).toBeLessThan(2_000);
      for (let i = 0; i < 16; i += 1) at.write(`many-${i}.txt`, `line ${i} of many\n`.repeat(14_000));
      expect((await scanRepository(options, at.root)).unified_diff).toMatch(
        /^The changes of this repository are larger than 3 MiB/,
      );
    },
  );

  git(
    "[GS-1] is found from any path in it, from a folder that a command names, and from a clone command; its reference says whether it was pushed",
    async () => {
      const at = makeRepository(join(folder.path, "found/repo"));
      expect(await findRepository(join(at.root, "not/yet/there.txt"))).toBe(at.root);
      expect(await findRepository(join(folder.path, "found"))).toBeUndefined();
      expect(findCommandFolders("cd repo && git clone https://example.com/team/tool.git", "/home")).toEqual(
        expect.arrayContaining(["/home", "/home/repo", "/home/tool"]),
      );
      const bare = join(folder.path, "found/bare.git");
      at.git("init", "-q", "--bare", bare);
      at.git("remote", "add", "origin", bare);
      expect(await loadReference(options, at.root)).toMatchObject({
        branch: "main",
        remote_origin: bare,
        pushed: false,
      });
      at.git("push", "-q", "origin", "main");
      expect(await loadReference(options, at.root)).toMatchObject({ pushed: true });
    },
  );
});

/** Returns the repositories in the first message to a new watcher. */
const getFirstRepositories = async (watches: GitWatches, chat = CHAT): Promise<string[]> => {
  const first = Promise.withResolvers<GitMessage>();
  const watch = watches.watch(chat, {
    send: (message) => {
      first.resolve(message);
      return true;
    },
  });
  watch.refresh();
  const { repositories = [] } = await first.promise;
  watch.stop();
  return repositories.map(({ repo_root }) => repo_root);
};

/** Returns a daemon's options. Two calls with the same name stand for a daemon and its restart. */
const makeWatchOptions = (name: string = uuid()) => ({
  ...options,
  record: new GitRecord(join(folder.path, `state-${name}`)),
  folder: () => join(folder.path, "nothing-here"),
});

describe("a chat's follower", () => {
  git("[GS-7] a restarted daemon reports the same repositories, with the changes since then", async () => {
    const at = makeRepository(join(folder.path, "kept"));
    const before = new GitWatches({ ...makeWatchOptions("kept"), clock: new ManualClock() });
    await before.recordAccess([CHAT], [join(folder.path, "made-later/repo/x.txt")], true);
    await before.recordAccess([CHAT], [join(at.root, "a.txt")], true);
    at.write("b.txt", "by hand\n");
    const later = makeRepository(join(folder.path, "made-later/repo"));
    expect(await getFirstRepositories(new GitWatches({ ...makeWatchOptions("kept"), clock: systemClock }))).toEqual([
      at.root,
      later.root,
    ]);
    // Another chat's record, or an unreadable one, is ignored.
    expect(
      await getFirstRepositories(new GitWatches({ ...makeWatchOptions("kept"), clock: systemClock }), OTHER),
    ).toEqual([]);
    await Bun.write(join(folder.path, "state-kept", `${CHAT}.json`), "{");
    expect(await getFirstRepositories(new GitWatches({ ...makeWatchOptions("kept"), clock: systemClock }))).toEqual([]);
  });

  git("[GS-7] for an unknown chat, reports the repository that contains the agent's folder", async () => {
    const at = makeRepository(join(folder.path, "around"));
    const options = { ...makeWatchOptions(), clock: systemClock, folder: () => join(at.root, "deep/inside") };
    expect(await getFirstRepositories(new GitWatches(options))).toEqual([at.root]);
  });

  git(
    "[GS-4] gets the state immediately, then only changes, at most once a second; a removed repository is reported as removed",
    async () => {
      const manual = new ManualClock();
      const watches = new GitWatches({ ...makeWatchOptions(), clock: manual });
      const at = makeRepository(join(folder.path, "watched"));
      const still = makeRepository(join(folder.path, "still"));
      await watches.recordAccess([CHAT], [join(at.root, "a.txt"), still.root], false);
      const messages: GitMessage[] = [];
      let arrival = Promise.withResolvers<void>();
      let isBusy = false;
      const refused = Promise.withResolvers<void>();
      const reader = {
        send: (message: GitMessage) => {
          if (isBusy) {
            refused.resolve();
            return false;
          }
          messages.push(message);
          arrival.resolve();
          return true;
        },
      };
      const nextChanges = async (): Promise<[string, boolean][]> => {
        await arrival.promise;
        arrival = Promise.withResolvers();
        return (messages.at(-1)?.repositories ?? []).map(({ repo_root, removed }) => [repo_root, removed]);
      };
      const watch = watches.watch(CHAT, reader);
      manual.advance(0);
      expect(await nextChanges()).toEqual([
        [at.root, false],
        [still.root, false],
      ]);
      at.write("b.txt", "new\n");
      await watches.recordAccess([CHAT], [join(at.root, "b.txt")], true);
      manual.advance(999);
      expect(messages).toHaveLength(1);
      manual.advance(1);
      expect(await nextChanges()).toEqual([[at.root, false]]);
      expect(messages.at(-1)?.repositories?.[0]?.unified_diff).toContain("+new\n");
      // Nothing has changed: only an explicit request gets a response.
      manual.advance(1_000);
      watch.refresh();
      manual.advance(0);
      expect(await nextChanges()).toEqual([]);
      // A busy reader gets the latest state when it is ready.
      isBusy = true;
      renameSync(at.root, `${at.root}-away`);
      manual.advance(30_000);
      await refused.promise;
      isBusy = false;
      watch.flush();
      expect(await nextChanges()).toEqual([[at.root, true]]);
      renameSync(`${at.root}-away`, at.root);
      manual.advance(30_000);
      expect(await nextChanges()).toEqual([[at.root, false]]);
      // An unreadable repository may be in the middle of a change: an error is sent only if the next scan also fails.
      rmSync(join(still.root, ".git/HEAD"));
      manual.advance(1_000);
      watch.refresh();
      manual.advance(0);
      expect(await nextChanges()).toEqual([]);
      manual.advance(1_000);
      await nextChanges();
      expect(messages.at(-1)).toMatchObject({ type: "error", message: expect.stringContaining(still.root) });
      watch.stop();
    },
  );

  test("[GS-1] a chat that has touched no repository has none", async () => {
    const watches = new GitWatches({ ...makeWatchOptions(), clock: new ManualClock() });
    await watches.recordAccess([CHAT], [folder.path], true);
    expect(await watches.listReferences(CHAT)).toEqual({ repositories: [] });
  });
});
