// Expired chats: inactive chats are archived, and archived chats are deleted with all their data, in small steps.
import { expect } from "bun:test";
import { existsSync } from "node:fs";
import { getTableColumns } from "drizzle-orm";
import { findChatAccessRow, updateChat } from "#db/chats/chats.ts";
import { findChatFile } from "#db/chats/files.ts";
import { insertRun, insertStep } from "#db/chats/runs.ts";
import { type ChatSettings, upsertChatSetting } from "#db/chats/settings.ts";
import { chats } from "#db/schema/chats.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { testInProcess, testInSingleProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const DAY_MS = 86_400_000;
const SWEEP_INTERVAL_MS = 600_000;

const openRetentionWorld = async () => {
  const clock = new ManualClock();
  const world = await openChatWorld({ clock });
  const { store, services } = getContext(world.server);
  const setSetting = <K extends keyof ChatSettings>(name: K, value: ChatSettings[K]) =>
    store.commit([upsertChatSetting(name, value)]);
  await setSetting("retention_days", 0);
  /** Advances time and completes everything due in it. */
  const passTime = async (ms: number) => {
    clock.leap(ms);
    services.sweep();
    await services.whenIdle();
  };
  /** Signs in the deployment's owner again, because sessions last a day and the tests pass several days. */
  const signInAdmin = () => new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  const getChatOrStatus = async (id: string) => {
    const response = await (await signInAdmin()).fetch("GET", `/api/v2/chats/${id}`);
    return response.status === 200 ? ((await response.json()) as Chat) : response.status;
  };
  const countRows = async (table: string, where = "1 = 1"): Promise<number> => {
    const sql = `select count(*) from ${table} where ${where}`;
    return (await store.get({ sql, params: [], map: ([value]) => Number(value) })) ?? 0;
  };
  return {
    world,
    clock,
    store,
    setSetting,
    passTime,
    signInAdmin,
    getChatOrStatus,
    countRows,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
};

/** Creates a chat whose turn has ended. */
const createAnsweredChat = async (world: ChatWorld, text: string, fields = {}): Promise<string> => {
  const { id } = await createChat(world, text, fields);
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say("so it is").finish();
  await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
  return id;
};
/** Returns whether the chat is archived, or the status of an error. */
const getArchived = (chat: Chat | number) => (typeof chat === "number" ? chat : chat.archived);

testInProcess(
  "[RT-1] archives inactive chats, unless they are pinned, active, or have an active sub-chat",
  async () => {
    await using opened = await openRetentionWorld();
    const { world, store, passTime, getChatOrStatus, setSetting } = opened;
    const silent = await createAnsweredChat(world, "silent");
    const pinned = await createAnsweredChat(world, "pinned");
    await world.owner.patch(`/api/v2/chats/${pinned}`, { pin_order: 1 });
    const root = await createAnsweredChat(world, "root");
    const child = await createAnsweredChat(world, "child");
    await store.commit([updateChat(child, { parent_chat_id: root, root_chat_id: root })]);
    const { id: running } = await createChat(world, "running");
    await world.models.next();
    await passTime(2 * DAY_MS);
    expect(getArchived(await getChatOrStatus(silent))).toBe(false);
    await setSetting("auto_archive_days", 3);
    // The session of the owner has expired, so the message is sent to the actor in the name of the owner.
    const message = { content: [{ type: "text" as const, text: "more" }], created_by: world.user_id, patch: {} };
    const send = { ...message, model_config_id: null, reasoning_effort: "", behavior: "queue" as const };
    await getContext(world.server).chats.ask(child, "send", send);
    // The running chat has also been inactive for days, and its call is retried.
    let call = await world.models.next();
    while (call.prompt !== "more") call = await world.models.next();
    call.finish();
    using follower = await Follower.open(await opened.signInAdmin(), child);
    await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
    await passTime(DAY_MS + SWEEP_INTERVAL_MS);
    const current = await Promise.all([silent, pinned, root, running].map(getChatOrStatus));
    expect(current.map(getArchived)).toEqual([true, false, false, false]);
    await passTime(3 * DAY_MS);
    expect([getArchived(await getChatOrStatus(root)), getArchived(await getChatOrStatus(child))]).toEqual([true, true]);
  },
);

testInProcess("[RT-2] archives at most 1,000 chats in one run, the longest inactive first", async () => {
  await using opened = await openRetentionWorld();
  const { world, store, passTime, setSetting, countRows } = opened;
  await createAnsweredChat(world, "the first");
  const columns = Object.values(getTableColumns(chats))
    .map(({ name }) => name)
    .filter((name) => name !== "key" && name !== "id" && name !== "updated_at");
  const columnList = columns.join(", ");
  const copyFirstChat =
    `insert into chats (key, id, updated_at, ${columnList}) select key + ?1, ?2, updated_at + ?1, ${columnList} ` +
    "from chats where title = 'the first' and key = (select min(key) from chats)";
  const rows = Array.from({ length: 1_000 }, (_, index) => [index + 1, crypto.randomUUID()]);
  await store.commit([{ sql: copyFirstChat, rows }]);
  await setSetting("auto_archive_days", 1);
  await passTime(DAY_MS + SWEEP_INTERVAL_MS);
  expect(await countRows("chats", "archived = 0")).toBe(1);
  const isNewest = "archived = 0 and updated_at = (select max(updated_at) from chats where archived = 0)";
  expect(await countRows("chats", isNewest)).toBe(1);
  await passTime(SWEEP_INTERVAL_MS);
  expect(await countRows("chats", "archived = 0")).toBe(0);
});

testInSingleProcess(
  "[RT-3] deletes chats that were archived long ago with all their data, in batches, and disconnects followers",
  async () => {
    await using opened = await openRetentionWorld();
    const { world, store, passTime, getChatOrStatus, setSetting, countRows, signInAdmin } = opened;
    const headers = { "Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="a.txt"' };
    const uploadPath = `/api/v2/chats/files?organization=${world.organization_id}`;
    const { id: file_id } = await world.owner.post<{ id: string }>(uploadPath, "words", { headers });
    const root = await createAnsweredChat(world, "mangoes", { content: [{ type: "file", file_id }] });
    const child = await createAnsweredChat(world, "papayas");
    await store.commit([updateChat(child, { parent_chat_id: root, root_chat_id: root })]);
    const keptChat = await createAnsweredChat(world, "mangoes as well");
    const key = (await store.get(findChatAccessRow({ id: root })))?.key as number;
    const firstId = 1_000_000;
    const text = JSON.stringify([{ type: "text", text: "word" }]);
    const messageRows = Array.from({ length: 2_500 }, (_, index) => [firstId + index, key, text]);
    await store.commit([
      {
        sql: "insert into messages (id, chat, revision, role, visibility, content, created_at) values (?1, ?2, 1, 'user', 'both', ?3, 1)",
        rows: messageRows,
      },
      {
        sql: "insert into message_search (rowid, words) values ((?2 << 32) | ?1, 'word')",
        rows: messageRows.map(([id, chat]) => [id, chat] as number[]),
      },
      insertRun({
        key: 1,
        id: crypto.randomUUID(),
        chat: key,
        kind: "chat_turn",
        status: "completed",
        provider: "",
        model: "",
        started_at: 1,
        updated_at: 1,
      }),
      insertStep({
        run: 1,
        number: 1,
        operation: "stream",
        status: "completed",
        request: {},
        started_at: 1,
        finished_at: 1,
      }),
    ]);
    await world.owner.post(
      `/api/v2/chats/${root}/messages`,
      { content: [{ type: "text", text: "x" }] },
      { headers: { "Idempotency-Key": "k" } },
    );
    (await world.models.next()).finish();
    using ownFollower = await Follower.open(world.owner, root);
    await ownFollower.until(({ status }) => status === "waiting");
    ownFollower.close();
    await world.owner.patch(`/api/v2/chats/${root}/acl`, { group_roles: { [world.organization_id]: "read" } });
    await world.owner.patch(`/api/v2/chats/${root}`, { archived: true });
    await setSetting("retention_days", 2);
    await passTime(DAY_MS + SWEEP_INTERVAL_MS);
    expect(getArchived(await getChatOrStatus(root))).toBe(true);
    using follower = await Follower.open(await signInAdmin(), root);
    await follower.until(({ status }) => status === "waiting");
    const batchSizes: number[] = [];
    const commit = store.commit.bind(store);
    store.commit = (async (batch, ...more) => {
      const deletes = batch.filter(({ sql }) => sql.startsWith("delete from messages "));
      for (const { rows } of deletes)
        batchSizes.push(await countRows("messages", `chat = ${key} and id <= ${rows[0]?.[1]}`));
      return commit(batch, ...more);
    }) as typeof store.commit;
    await passTime(DAY_MS);
    expect([await getChatOrStatus(root), await getChatOrStatus(child)]).toEqual([404, 404]);
    expect((await follower.closed).code).toBe(1008);
    expect(batchSizes.length).toBeGreaterThan(10);
    expect(Math.max(...batchSizes)).toBeLessThanOrEqual(1_000);
    for (const table of ["messages", "queued_messages", "chat_requests", "chat_files", "chat_shares", "chat_runs"]) {
      expect([table, await countRows(table, `chat = ${key}`)]).toEqual([table, 0]);
    }
    expect(await countRows("chat_run_steps")).toBe(0);
    const countMatches = async (table: string, word: string): Promise<number> => {
      const sql = `select count(*) from ${table} where ${table} match ?`;
      return (await store.get({ sql, params: [word], map: ([value]) => Number(value) })) ?? 0;
    };
    expect(await countMatches("message_search", "word")).toBe(0);
    expect(await countMatches("title_search", "mangoes")).toBe(1);
    expect(getArchived(await getChatOrStatus(keptChat))).toBe(false);
    expect(await store.get(findChatFile({ id: file_id }))).toBeUndefined();
    expect((await (await signInAdmin()).fetch("PATCH", `/api/v2/chats/${root}`, { title: "again" })).status).toBe(404);
  },
);

testInProcess(
  "[RT-3] keeps chats that were restored or archived again recently, and removes the bytes of deleted files",
  async () => {
    await using opened = await openRetentionWorld();
    const { world, store, passTime, getChatOrStatus, setSetting } = opened;
    const { chats, blobs } = getContext(world.server);
    const headers = { "Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="a.txt"' };
    const uploadPath = `/api/v2/chats/files?organization=${world.organization_id}`;
    const { id: file_id } = await world.owner.post<{ id: string }>(uploadPath, "some words", { headers });
    const blobPath = await blobs.getPath((await store.get(findChatFile({ id: file_id })))?.hash as string);
    const deletedChat = await createAnsweredChat(world, "gone", { content: [{ type: "file", file_id }] });
    const restoredChat = await createAnsweredChat(world, "back");
    for (const id of [deletedChat, restoredChat]) await world.owner.patch(`/api/v2/chats/${id}`, { archived: true });
    await setSetting("retention_days", 2);
    await passTime(DAY_MS + SWEEP_INTERVAL_MS);
    await chats.ask(restoredChat, "change", { archived: false, patch: {}, pin: null });
    expect(await chats.ask(restoredChat, "purge", { before: Number.MAX_SAFE_INTEGER })).toBe("stale");
    await chats.ask(restoredChat, "change", { archived: true, patch: {}, pin: null });
    expect(await chats.ask(restoredChat, "purge", { before: opened.clock.now() - DAY_MS })).toBe("stale");
    await passTime(DAY_MS);
    expect([await getChatOrStatus(deletedChat), getArchived(await getChatOrStatus(restoredChat))]).toEqual([404, true]);
    await passTime(SWEEP_INTERVAL_MS * 6);
    await passTime(SWEEP_INTERVAL_MS * 6);
    expect(existsSync(blobPath)).toBe(false);
  },
);

testInSingleProcess("[RT-4] the next run continues an interrupted deletion, and removes nothing else", async () => {
  await using opened = await openRetentionWorld();
  const { world, store, passTime, getChatOrStatus, setSetting, countRows } = opened;
  const id = await createAnsweredChat(world, "cut");
  const keptChat = await createAnsweredChat(world, "kept");
  await sendMessage(world, id, "more");
  (await world.models.next()).finish();
  using follower = await Follower.open(world.owner, id);
  await follower.until(({ status }) => status === "waiting");
  await world.owner.patch(`/api/v2/chats/${id}`, { archived: true });
  await setSetting("retention_days", 1);
  const commit = store.commit.bind(store);
  let failures = 0;
  store.commit = (async (batch, ...more) => {
    if (batch.some(({ sql }) => sql.startsWith("delete from chats ")) && failures++ === 0) throw new Error("no");
    return commit(batch, ...more);
  }) as typeof store.commit;
  await passTime(DAY_MS + SWEEP_INTERVAL_MS);
  expect(failures).toBe(1);
  expect(getArchived(await getChatOrStatus(id))).toBe(true);
  await passTime(SWEEP_INTERVAL_MS);
  expect(await getChatOrStatus(id)).toBe(404);
  expect(await countRows("messages")).toBe(2);
  expect(getArchived(await getChatOrStatus(keptChat))).toBe(false);
});

testInProcess(
  "[RT-5] deletes recorded model calls after a separate period and keeps the chat; 0 days means never",
  async () => {
    await using opened = await openRetentionWorld();
    const { world, store, clock, passTime, getChatOrStatus, setSetting, countRows } = opened;
    const id = await createAnsweredChat(world, "recorded");
    const chat = (await store.get(findChatAccessRow({ id })))?.key as number;
    const createRun = (key: number, started_at: number) => [
      insertRun({
        key,
        id: crypto.randomUUID(),
        chat,
        kind: "chat_turn",
        status: "completed",
        provider: "",
        model: "",
        started_at,
        updated_at: started_at,
      }),
      ...Array.from({ length: 150 }, (_, index) =>
        insertStep({
          run: key,
          number: index + 1,
          operation: "stream",
          status: "completed",
          request: {},
          started_at,
          finished_at: started_at,
        }),
      ),
    ];
    await store.commit([...createRun(1, clock.now()), ...createRun(2, clock.now() + DAY_MS)]);
    await setSetting("debug_retention_days", 0);
    await passTime(DAY_MS + SWEEP_INTERVAL_MS);
    expect(await countRows("chat_runs")).toBe(2);
    await setSetting("debug_retention_days", 1);
    await passTime(SWEEP_INTERVAL_MS);
    expect([await countRows("chat_runs"), await countRows("chat_run_steps")]).toEqual([1, 150]);
    expect(getArchived(await getChatOrStatus(id))).toBe(false);
  },
);
