// The cleanup of old checkpoints, with real git in a real folder: which checkpoints and objects are kept, and which are removed.
import { afterAll, beforeAll, expect } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { CHECKPOINT_DAYS, MAX_CHECKPOINTS_PER_CHAT } from "#schema/agents/checkpoint.ts";
import { Checkpoints } from "#src/daemon/checkpoints/checkpoints.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { makeRepository } from "#test/support/repository.ts";
import { tempDirectory } from "#test/support/server.ts";

const temp = tempDirectory();
const folder = join(temp.path, "home");
const state = join(temp.path, "state");
beforeAll(() => void mkdirSync(folder));
afterAll(() => temp[Symbol.dispose]());

const env = { PATH: process.env.PATH ?? "", GIT_CONFIG_GLOBAL: "/dev/null" };
const clock = systemClock;
const checkpoints = new Checkpoints({
  clock,
  env,
  state,
  folder: () => folder,
  groups: new ProcessGroups({ clock, agent_id: "t" }),
});

const CHAT_ID = "11111111-1111-4111-8111-111111111111";
const SECOND_CHAT_ID = "22222222-2222-4222-8222-222222222222";
const DAY = 86_400_000;

const recordPath = (chat: string, message: number): string => join(state, "chats", chat, `${message}.json`);
const listMessageIds = (chat: string): number[] =>
  readdirSync(join(state, "chats", chat))
    .map((name) => Number.parseInt(name, 10))
    .sort((a, b) => a - b);
const listShadows = (): string[] => readdirSync(join(state, "folders"));
const listObjects = (): string[] =>
  readdirSync(join(state, "objects")).flatMap((head) =>
    head.length === 2 || head === "pack"
      ? readdirSync(join(state, "objects", head)).map((tail) => join("objects", head, tail))
      : [],
  );
/** Returns whether git still has a file with this content. */
const isKept = (content: string): boolean => {
  const id = new Bun.CryptoHasher("sha1").update(`blob ${content.length}\0${content}`).digest("hex");
  return listObjects().some((object) => object.endsWith(join(id.slice(0, 2), id.slice(2))));
};
const makeOlder = (file: string, ms: number): void => {
  const time = new Date(clock.now() - ms);
  utimesSync(file, time, time);
};
/** Makes all of git's objects appear a day old. */
const ageObjects = (): void => {
  for (const object of listObjects()) makeOlder(join(state, object), DAY);
  for (const name of listShadows()) makeOlder(join(state, "folders", name, "info", "ready"), DAY);
};
/** Takes a checkpoint of the folder with these `notes`. */
const takeCheckpoint = async (chat_id: string, message_id: number, notes: string): Promise<string[] | undefined> => {
  writeFileSync(join(folder, "notes"), notes);
  const { chats, problems } = await checkpoints.take({ chat_id, message_id });
  expect(problems).toEqual([]);
  await checkpoints.waitUntilIdle();
  return chats;
};
const restoreNotes = async (chat_id: string, message_id: number): Promise<string> => {
  await checkpoints.restore({ chat_id, message_id });
  return readFileSync(join(folder, "notes"), "utf8");
};

testNeeding(
  [needs.git],
  "[UN-9][UN-10] a chat keeps its newest hundred checkpoints; unused objects and the checkpoints of deleted chats are removed",
  async () => {
    const { root, write } = makeRepository(join(folder, "work"));
    write("a.txt", "changed\n");
    expect(await takeCheckpoint(CHAT_ID, 1, "first")).toBeUndefined();
    await takeCheckpoint(CHAT_ID, 2, "second");
    await takeCheckpoint(SECOND_CHAT_ID, 5, "other");
    const record = readFileSync(recordPath(CHAT_ID, 2));
    // A cleanup starts only above this number of checkpoints.
    for (let id = 3; id < MAX_CHECKPOINTS_PER_CHAT + 20; id++) writeFileSync(recordPath(CHAT_ID, id), record);
    ageObjects();
    await takeCheckpoint(CHAT_ID, 1_000, "newest");
    expect(listMessageIds(CHAT_ID)).toHaveLength(MAX_CHECKPOINTS_PER_CHAT + 20);
    expect(await restoreNotes(CHAT_ID, 1)).toBe("first");
    await takeCheckpoint(CHAT_ID, 1_001, "newest of all");
    expect(listMessageIds(CHAT_ID)).toHaveLength(MAX_CHECKPOINTS_PER_CHAT);
    expect([listMessageIds(CHAT_ID).at(0), listMessageIds(CHAT_ID).at(-1)]).toEqual([22, 1_001]);
    expect([isKept("first"), isKept("second"), isKept("other"), isKept("newest of all")]).toEqual([
      false,
      true,
      true,
      true,
    ]);
    const objectCount = listObjects().length;
    expect(await restoreNotes(CHAT_ID, 22)).toBe("second");
    expect(await restoreNotes(SECOND_CHAT_ID, 5)).toBe("other");
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("changed\n");
    expect((await checkpoints.restore({ chat_id: CHAT_ID, message_id: 1 }).catch((error) => error)).message).toContain(
      "no checkpoint",
    );

    // Unreferenced objects are removed once they are old, and so are temporary files of killed programs.
    await checkpoints.removeChats([CHAT_ID]);
    await takeCheckpoint(SECOND_CHAT_ID, 4, "other");
    expect(existsSync(join(state, "chats", CHAT_ID))).toBe(false);
    ageObjects();
    const leftover = join(state, "folders", listShadows()[0] ?? "", "input-killed");
    writeFileSync(leftover, "");
    makeOlder(leftover, DAY);
    await checkpoints.removeChats([]);
    await checkpoints.waitUntilIdle();
    expect([listObjects().length < objectCount, isKept("newest of all"), existsSync(leftover)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(await restoreNotes(SECOND_CHAT_ID, 5)).toBe("other");
    ageObjects();
    await checkpoints.removeChats([SECOND_CHAT_ID]);
    await checkpoints.waitUntilIdle();
    expect(listShadows()).toEqual([]);
    // A new checkpoint works after everything was removed.
    await takeCheckpoint(SECOND_CHAT_ID, 6, "again");
    writeFileSync(join(folder, "notes"), "spoilt");
    expect(await restoreNotes(SECOND_CHAT_ID, 6)).toBe("again");
  },
);

testNeeding(
  [needs.git],
  "[UN-10] once a day, reports the chats with checkpoints and removes checkpoints that are too old to be restored",
  async () => {
    writeFileSync(recordPath(SECOND_CHAT_ID, 7), readFileSync(recordPath(SECOND_CHAT_ID, 6)));
    writeFileSync(`${recordPath(SECOND_CHAT_ID, 8)}.killed`, "{");
    makeOlder(recordPath(SECOND_CHAT_ID, 6), CHECKPOINT_DAYS * DAY);
    makeOlder(recordPath(SECOND_CHAT_ID, 7), (CHECKPOINT_DAYS + 2) * DAY);
    makeOlder(`${recordPath(SECOND_CHAT_ID, 8)}.killed`, DAY);
    expect(await takeCheckpoint(CHAT_ID, 20, "not yet")).toBeUndefined();
    makeOlder(join(state, "tidied"), DAY + 1_000);
    expect((await takeCheckpoint(CHAT_ID, 21, "a day later"))?.sort()).toEqual([CHAT_ID, SECOND_CHAT_ID]);
    expect(readdirSync(join(state, "chats", SECOND_CHAT_ID))).toEqual(["6.json"]);
    expect(await takeCheckpoint(CHAT_ID, 22, "the same day")).toBeUndefined();
    // An index that git cannot read is recreated. Until then, nothing is removed.
    ageObjects();
    const before = listObjects();
    for (const name of listShadows()) writeFileSync(join(state, "folders", name, "index"), "damaged");
    await checkpoints.removeChats([SECOND_CHAT_ID]);
    await checkpoints.waitUntilIdle();
    expect(listObjects()).toEqual(before);
    await takeCheckpoint(CHAT_ID, 23, "still");
    writeFileSync(join(folder, "notes"), "spoilt");
    expect(await restoreNotes(CHAT_ID, 23)).toBe("still");
  },
);

testNeeding(
  [needs.git],
  "[TY-11] counts and shows committed and uncommitted changes since a checkpoint, and refuses another workspace's checkpoint",
  async () => {
    const work = makeRepository(join(folder, "changes"));
    work.write("kept.txt", "as it was\n");
    work.write("edited.txt", "one\ntwo\n");
    work.write("gone.txt", "gone\n");
    await takeCheckpoint(CHAT_ID, 50, "before\n");
    const loadChanges = () => checkpoints.listChanges({ chat_id: CHAT_ID, message_id: 50 });
    expect(await loadChanges()).toEqual({ folders: [], problems: [] });
    writeFileSync(join(folder, "notes"), "after\n");
    work.write("edited.txt", "one\nthree\nfour\n");
    work.write("new.txt", "new\n");
    Bun.spawnSync(["rm", join(work.root, "gone.txt")]);
    const git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"];
    for (const gitArguments of [
      ["add", "-A"],
      ["commit", "-qm", "all"],
    ])
      Bun.spawnSync([...git, ...gitArguments], { cwd: work.root, env });
    const { folders, problems } = await loadChanges();
    expect(problems).toEqual([]);
    expect(folders.map(({ unified_diff: _, ...counts }) => counts)).toEqual([
      { root: folder, files: 1, added: 1, removed: 1 },
      { root: work.root, files: 3, added: 3, removed: 2 },
    ]);
    expect(folders[1]?.unified_diff).toContain("-two\n+three\n+four\n");
    expect(folders[1]?.unified_diff).not.toContain("kept.txt");
    // The record looks like one in a home that was restored from a fork.
    const record = readFileSync(recordPath(CHAT_ID, 50), "utf8").replaceAll(folder, `${folder}-of-a-fork`);
    writeFileSync(recordPath(CHAT_ID, 51), record);
    for (const operation of [
      checkpoints.listChanges({ chat_id: CHAT_ID, message_id: 51 }),
      checkpoints.restore({ chat_id: CHAT_ID, message_id: 51 }),
    ]) {
      expect((await operation.catch((error) => error)).message).toBe(
        "The files of this message were kept in another workspace.",
      );
    }
    expect(existsSync(`${folder}-of-a-fork`)).toBe(false);
  },
);
