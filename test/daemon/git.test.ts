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
const CHAT_ID = "11111111-1111-4111-8111-111111111111";
const OTHER_CHAT_ID = "22222222-2222-4222-8222-222222222222";
const testGit = (title: string, run: () => Promise<void>) => testNeeding([needs.git], title, run);

describe("a repository", () => {
  testGit(
    "[GS-2] is reported with its branch, its origin without credentials, and all changes since the last commit",
    async () => {
      const repository = makeRepository(join(folder.path, "shown"));
      repository.git("remote", "add", "origin", "https://me:secret@example.com/team/repo.git");
      repository.git("checkout", "-q", "-b", "feature/x");
      repository.write(".gitignore", "ignored\n");
      repository.write("a.txt", "one\n2\nthree\n");
      repository.write("ignored", "not shown");
      repository.write("sub/new file.txt", "hello\nworld");
      repository.write("bytes", new Uint8Array([0, 1, 2]));
      repository.write("staged.txt", "staged\n");
      repository.git("add", "staged.txt");
      symlinkSync("a.txt", join(repository.root, "link"));
      const { branch, remote_origin, unified_diff } = await scanRepository(options, repository.root);
      expect([branch, remote_origin]).toEqual(["feature/x", "https://example.com/team/repo.git"]);
      expect(unified_diff).toContain("-two\n+2\n");
      expect(unified_diff).toContain("+++ b/staged.txt\n@@ -0,0 +1 @@\n+staged\n");
      expect(unified_diff).toContain("Binary files /dev/null and b/bytes differ\n");
      expect(unified_diff).toContain("new file mode 120000\n");
      expect(unified_diff).toContain("+hello\n+world\n\\ No newline at end of file\n");
      expect(unified_diff).not.toContain("not shown");
      // Git creates the same files from the diff.
      const target = makeRepository(join(folder.path, "applied"));
      const withoutBytes = unified_diff
        .split(/^(?=diff --git )/m)
        .filter((fileDiff) => !fileDiff.includes("b/bytes"))
        .join("");
      writeFileSync(join(folder.path, "patch"), withoutBytes);
      target.git("apply", join(folder.path, "patch"));
      expect(readdirSync(target.root).sort()).toEqual([".git", ".gitignore", "a.txt", "link", "staged.txt", "sub"]);
      repository.git("add", ".");
      repository.git("commit", "-q", "-m", "second");
      expect((await scanRepository(options, repository.root)).unified_diff).toBe("");
      repository.git("checkout", "-q", "--detach");
      expect((await scanRepository(options, repository.root)).branch).toBe("");
    },
  );

  testGit(
    "[GS-2] without a commit is compared with an empty tree; a scan writes nothing and runs no configured program",
    async () => {
      const repository = makeRepository(join(folder.path, "fresh"), { empty: true });
      repository.write("staged", "one\n");
      repository.git("add", ".");
      repository.write("staged", "two\n");
      repository.git("config", "core.fsmonitor", `touch ${join(folder.path, "ran")}`);
      repository.git("config", "diff.external", `touch ${join(folder.path, "ran")}`);
      const before = Bun.file(join(repository.root, ".git/index")).lastModified;
      const { branch, unified_diff } = await scanRepository(options, repository.root);
      expect([branch, unified_diff.includes("+two\n")]).toEqual(["main", true]);
      expect(Bun.file(join(repository.root, ".git/index")).lastModified).toBe(before);
      expect(readdirSync(folder.path)).not.toContain("ran");
    },
  );

  testGit(
    "[GS-3] replaces large files and diffs with stubs, and an overly large total diff with a notice",
    async () => {
      const repository = makeRepository(join(folder.path, "large"));
      repository.write("a.txt", "changed line\n".repeat(30_000));
      repository.write("huge.txt", "x".repeat(2 * 1024 * 1024 + 1));
      repository.write("new.txt", "new line\n".repeat(40_000));
      repository.write("small.txt", "small\n");
      const { unified_diff } = await scanRepository(options, repository.root);
      expect(unified_diff.match(/\(the change of this file is larger than 256 KiB/g)).toHaveLength(2);
      expect(unified_diff).toContain("(the file is larger than 2 MiB and is not shown)");
      expect(unified_diff).toContain("+small\n");
      expect(unified_diff.length).toBeLessThan(2_000);
      for (let i = 0; i < 16; i += 1) repository.write(`many-${i}.txt`, `line ${i} of many\n`.repeat(14_000));
      expect((await scanRepository(options, repository.root)).unified_diff).toMatch(
        /^The changes of this repository are larger than 3 MiB/,
      );
    },
  );

  testGit(
    "[GS-1] is found from a path inside it, a command's folder or a clone command; its reference says whether it was pushed",
    async () => {
      const repository = makeRepository(join(folder.path, "found/repo"));
      expect(await findRepository(join(repository.root, "not/yet/there.txt"))).toBe(repository.root);
      expect(await findRepository(join(folder.path, "found"))).toBeUndefined();
      expect(findCommandFolders("cd repo && git clone https://example.com/team/tool.git", "/home")).toEqual(
        expect.arrayContaining(["/home", "/home/repo", "/home/tool"]),
      );
      const bare = join(folder.path, "found/bare.git");
      repository.git("init", "-q", "--bare", bare);
      repository.git("remote", "add", "origin", bare);
      expect(await loadReference(options, repository.root)).toMatchObject({
        branch: "main",
        remote_origin: bare,
        pushed: false,
      });
      repository.git("push", "-q", "origin", "main");
      expect(await loadReference(options, repository.root)).toMatchObject({ pushed: true });
    },
  );
});

/** Returns the repositories in the first message to a new watcher. */
const getFirstRepositories = async (watches: GitWatches, chat = CHAT_ID): Promise<string[]> => {
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

/** Returns the options of a daemon. A second call with the same name represents the daemon after a restart. */
const makeWatchOptions = (name: string = uuid()) => ({
  ...options,
  record: new GitRecord(join(folder.path, `state-${name}`)),
  folder: () => join(folder.path, "nothing-here"),
});

describe("a chat's follower", () => {
  testGit("[GS-7] a restarted daemon reports the same repositories, with the changes since then", async () => {
    const repository = makeRepository(join(folder.path, "kept"));
    const before = new GitWatches({ ...makeWatchOptions("kept"), clock: new ManualClock() });
    await before.recordAccess([CHAT_ID], [join(folder.path, "made-later/repo/x.txt")], true);
    await before.recordAccess([CHAT_ID], [join(repository.root, "a.txt")], true);
    repository.write("b.txt", "by hand\n");
    const later = makeRepository(join(folder.path, "made-later/repo"));
    expect(await getFirstRepositories(new GitWatches({ ...makeWatchOptions("kept"), clock: systemClock }))).toEqual([
      repository.root,
      later.root,
    ]);
    // The daemon ignores another chat's record and an unreadable one.
    expect(
      await getFirstRepositories(new GitWatches({ ...makeWatchOptions("kept"), clock: systemClock }), OTHER_CHAT_ID),
    ).toEqual([]);
    await Bun.write(join(folder.path, "state-kept", `${CHAT_ID}.json`), "{");
    expect(await getFirstRepositories(new GitWatches({ ...makeWatchOptions("kept"), clock: systemClock }))).toEqual([]);
  });

  testGit("[GS-7] for an unknown chat, reports the repository that contains the agent's folder", async () => {
    const repository = makeRepository(join(folder.path, "around"));
    const options = { ...makeWatchOptions(), clock: systemClock, folder: () => join(repository.root, "deep/inside") };
    expect(await getFirstRepositories(new GitWatches(options))).toEqual([repository.root]);
  });

  testGit(
    "[GS-4] gets the state immediately, then changes at most once a second, including removed repositories",
    async () => {
      const manualClock = new ManualClock();
      const watches = new GitWatches({ ...makeWatchOptions(), clock: manualClock });
      const repository = makeRepository(join(folder.path, "watched"));
      const unchanged = makeRepository(join(folder.path, "still"));
      await watches.recordAccess([CHAT_ID], [join(repository.root, "a.txt"), unchanged.root], false);
      const messages: GitMessage[] = [];
      let arrival = Promise.withResolvers<void>();
      let isReaderBusy = false;
      const refused = Promise.withResolvers<void>();
      const reader = {
        send: (message: GitMessage) => {
          if (isReaderBusy) {
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
      const watch = watches.watch(CHAT_ID, reader);
      manualClock.advance(0);
      expect(await nextChanges()).toEqual([
        [repository.root, false],
        [unchanged.root, false],
      ]);
      repository.write("b.txt", "new\n");
      await watches.recordAccess([CHAT_ID], [join(repository.root, "b.txt")], true);
      manualClock.advance(999);
      expect(messages).toHaveLength(1);
      manualClock.advance(1);
      expect(await nextChanges()).toEqual([[repository.root, false]]);
      expect(messages.at(-1)?.repositories?.[0]?.unified_diff).toContain("+new\n");
      // When nothing has changed, only an explicit refresh gets a response.
      manualClock.advance(1_000);
      watch.refresh();
      manualClock.advance(0);
      expect(await nextChanges()).toEqual([]);
      // A busy reader gets the latest state when it is ready.
      isReaderBusy = true;
      renameSync(repository.root, `${repository.root}-away`);
      manualClock.advance(30_000);
      await refused.promise;
      isReaderBusy = false;
      watch.flush();
      expect(await nextChanges()).toEqual([[repository.root, true]]);
      renameSync(`${repository.root}-away`, repository.root);
      manualClock.advance(30_000);
      expect(await nextChanges()).toEqual([[repository.root, false]]);
      // An unreadable repository may be changing at this moment, so an error is sent only if the next scan also fails.
      rmSync(join(unchanged.root, ".git/HEAD"));
      manualClock.advance(1_000);
      watch.refresh();
      manualClock.advance(0);
      expect(await nextChanges()).toEqual([]);
      manualClock.advance(1_000);
      await nextChanges();
      expect(messages.at(-1)).toMatchObject({ type: "error", message: expect.stringContaining(unchanged.root) });
      watch.stop();
    },
  );

  test("[GS-1] a chat that has touched no repository has none", async () => {
    const watches = new GitWatches({ ...makeWatchOptions(), clock: new ManualClock() });
    await watches.recordAccess([CHAT_ID], [folder.path], true);
    expect(await watches.listReferences(CHAT_ID)).toEqual({ repositories: [] });
  });
});
