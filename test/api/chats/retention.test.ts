// Expired chats: inactive ones are archived, archived ones deleted with all their data, in small steps.
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
import { testInside, testInsideSingle } from "#test/support/inside.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const DAY = 86_400_000;
const SWEEP_INTERVAL_MS = 600_000;

const openAged = async () => {
  const clock = new ManualClock();
  const world = await openChatWorld({ clock });
  const { store, services } = getContext(world.server);
  const set = <K extends keyof ChatSettings>(name: K, value: ChatSettings[K]) =>
    store.commit([upsertChatSetting(name, value)]);
  await set("retention_days", 0);
  /** Advances time and completes everything due in it. */
  const pass = async (ms: number) => {
    clock.leap(ms);
    services.sweep();
    await services.whenIdle();
  };
  /** Sessions last a day and days pass here, so the site's owner signs in again. */
  const admin = () => new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  const getChatOrStatus = async (id: string) => {
    const response = await (await admin()).fetch("GET", `/api/v2/chats/${id}`);
    return response.status === 200 ? ((await response.json()) as Chat) : response.status;
  };
  const count = async (table: string, where = "1 = 1"): Promise<number> => {
    const sql = `select count(*) from ${table} where ${where}`;
    return (await store.get({ sql, params: [], map: ([value]) => Number(value) })) ?? 0;
  };
  return {
    world,
    clock,
    store,
    set,
    pass,
    admin,
    look: getChatOrStatus,
    count,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
};

/** Creates a chat whose turn has ended. */
const createAnsweredChat = async (world: ChatWorld, text: string, more = {}): Promise<string> => {
  const { id } = await createChat(world, text, more);
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say("so it is").finish();
  await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
  return id;
};
const getArchived = (chat: Chat | number) => (typeof chat === "number" ? chat : chat.archived);

testInside("[RT-1] inactive chats are archived, unless pinned, active, or with an active sub-chat", async () => {
  await using services = await openAged();
  const { world, store, pass, look, set } = services;
  const silent = await createAnsweredChat(world, "silent");
  const pinned = await createAnsweredChat(world, "pinned");
  await world.owner.patch(`/api/v2/chats/${pinned}`, { pin_order: 1 });
  const root = await createAnsweredChat(world, "root");
  const child = await createAnsweredChat(world, "child");
  await store.commit([updateChat(child, { parent_chat_id: root, root_chat_id: root })]);
  const { id: running } = await createChat(world, "running");
  await world.models.next();
  await pass(2 * DAY);
  expect(getArchived(await look(silent))).toBe(false);
  await set("auto_archive_days", 3);
  // The sub-chat gets a message in the name of its owner, whose session has expired.
  const message = { content: [{ type: "text" as const, text: "more" }], created_by: world.user_id, patch: {} };
  const send = { ...message, model_config_id: null, reasoning_effort: "", behavior: "queue" as const };
  await getContext(world.server).chats.ask(child, "send", send);
  // The running one has also been inactive for days, and is retried.
  let call = await world.models.next();
  while (call.prompt !== "more") call = await world.models.next();
  call.finish();
  using follower = await Follower.open(await services.admin(), child);
  await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
  await pass(DAY + SWEEP_INTERVAL_MS);
  const now = await Promise.all([silent, pinned, root, running].map(look));
  expect(now.map(getArchived)).toEqual([true, false, false, false]);
  await pass(3 * DAY);
  expect([getArchived(await look(root)), getArchived(await look(child))]).toEqual([true, true]);
});

testInside("[RT-2] at most 1,000 chats are archived in one run, the longest inactive first", async () => {
  await using services = await openAged();
  const { world, store, pass, set, count } = services;
  await createAnsweredChat(world, "the first");
  const columns = Object.values(getTableColumns(chats))
    .map(({ name }) => name)
    .filter((name) => name !== "key" && name !== "id" && name !== "updated_at");
  const list = columns.join(", ");
  const copy = `insert into chats (key, id, updated_at, ${list}) select key + ?1, ?2, updated_at + ?1, ${list} from chats where title = 'the first' and key = (select min(key) from chats)`;
  const rows = Array.from({ length: 1_000 }, (_, index) => [index + 1, crypto.randomUUID()]);
  await store.commit([{ sql: copy, rows }]);
  await set("auto_archive_days", 1);
  await pass(DAY + SWEEP_INTERVAL_MS);
  expect(await count("chats", "archived = 0")).toBe(1);
  expect(
    await count("chats", "archived = 0 and updated_at = (select max(updated_at) from chats where archived = 0)"),
  ).toBe(1);
  await pass(SWEEP_INTERVAL_MS);
  expect(await count("chats", "archived = 0")).toBe(0);
});

testInsideSingle(
  "[RT-3] chats archived long ago are deleted with all their data, in batches; followers are notified",
  async () => {
    await using services = await openAged();
    const { world, store, pass, look, set, count, admin } = services;
    const headers = { "Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="a.txt"' };
    const to = `/api/v2/chats/files?organization=${world.organization_id}`;
    const { id: file } = await world.owner.post<{ id: string }>(to, "words", { headers });
    const root = await createAnsweredChat(world, "mangoes", { content: [{ type: "file", file_id: file }] });
    const child = await createAnsweredChat(world, "papayas");
    await store.commit([updateChat(child, { parent_chat_id: root, root_chat_id: root })]);
    const keptChat = await createAnsweredChat(world, "mangoes as well");
    const key = (await store.get(findChatAccessRow({ id: root })))?.key as number;
    const first = 1_000_000;
    const text = JSON.stringify([{ type: "text", text: "word" }]);
    const many = Array.from({ length: 2_500 }, (_, index) => [first + index, key, text]);
    await store.commit([
      {
        sql: "insert into messages (id, chat, revision, role, visibility, content, created_at) values (?1, ?2, 1, 'user', 'both', ?3, 1)",
        rows: many,
      },
      {
        sql: "insert into message_search (rowid, words) values ((?2 << 32) | ?1, 'word')",
        rows: many.map(([id, chat]) => [id, chat] as number[]),
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
    using mine = await Follower.open(world.owner, root);
    await mine.until(({ status }) => status === "waiting");
    mine.close();
    await world.owner.patch(`/api/v2/chats/${root}/acl`, { group_roles: { [world.organization_id]: "read" } });
    await world.owner.patch(`/api/v2/chats/${root}`, { archived: true });
    await set("retention_days", 2);
    await pass(DAY + SWEEP_INTERVAL_MS);
    expect(getArchived(await look(root))).toBe(true);
    using follower = await Follower.open(await admin(), root);
    await follower.until(({ status }) => status === "waiting");
    const sizes: number[] = [];
    const commit = store.commit.bind(store);
    store.commit = (async (batch, ...more) => {
      const deletes = batch.filter(({ sql }) => sql.startsWith("delete from messages "));
      for (const { rows } of deletes) sizes.push(await count("messages", `chat = ${key} and id <= ${rows[0]?.[1]}`));
      return commit(batch, ...more);
    }) as typeof store.commit;
    await pass(DAY);
    expect([await look(root), await look(child)]).toEqual([404, 404]);
    expect((await follower.closed).code).toBe(1008);
    expect(sizes.length).toBeGreaterThan(10);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
    for (const table of ["messages", "queued_messages", "chat_requests", "chat_files", "chat_shares", "chat_runs"]) {
      expect([table, await count(table, `chat = ${key}`)]).toEqual([table, 0]);
    }
    expect(await count("chat_run_steps")).toBe(0);
    const countMatches = async (table: string, word: string): Promise<number> => {
      const sql = `select count(*) from ${table} where ${table} match ?`;
      return (await store.get({ sql, params: [word], map: ([value]) => Number(value) })) ?? 0;
    };
    expect(await countMatches("message_search", "word")).toBe(0);
    expect(await countMatches("title_search", "mangoes")).toBe(1);
    expect(getArchived(await look(keptChat))).toBe(false);
    expect(await store.get(findChatFile({ id: file }))).toBeUndefined();
    expect((await (await admin()).fetch("PATCH", `/api/v2/chats/${root}`, { title: "again" })).status).toBe(404);
  },
);

testInside(
  "[RT-3] recently restored or rearchived chats are kept, and the bytes of deleted files are removed",
  async () => {
    await using services = await openAged();
    const { world, store, pass, look, set } = services;
    const { chats, blobs } = getContext(world.server);
    const headers = { "Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="a.txt"' };
    const to = `/api/v2/chats/files?organization=${world.organization_id}`;
    const { id: file } = await world.owner.post<{ id: string }>(to, "some words", { headers });
    const bytes = await blobs.getPath((await store.get(findChatFile({ id: file })))?.hash as string);
    const gone = await createAnsweredChat(world, "gone", { content: [{ type: "file", file_id: file }] });
    const back = await createAnsweredChat(world, "back");
    for (const id of [gone, back]) await world.owner.patch(`/api/v2/chats/${id}`, { archived: true });
    await set("retention_days", 2);
    await pass(DAY + SWEEP_INTERVAL_MS);
    await chats.ask(back, "change", { archived: false, patch: {}, pin: null });
    expect(await chats.ask(back, "purge", { before: Number.MAX_SAFE_INTEGER })).toBe("stale");
    await chats.ask(back, "change", { archived: true, patch: {}, pin: null });
    expect(await chats.ask(back, "purge", { before: services.clock.now() - DAY })).toBe("stale");
    await pass(DAY);
    expect([await look(gone), getArchived(await look(back))]).toEqual([404, true]);
    await pass(SWEEP_INTERVAL_MS * 6);
    await pass(SWEEP_INTERVAL_MS * 6);
    expect(existsSync(bytes)).toBe(false);
  },
);

testInsideSingle("[RT-4] an interrupted deletion continues with the next run and removes nothing else", async () => {
  await using services = await openAged();
  const { world, store, pass, look, set, count } = services;
  const id = await createAnsweredChat(world, "cut");
  const keptChat = await createAnsweredChat(world, "kept");
  await sendMessage(world, id, "more");
  (await world.models.next()).finish();
  using follower = await Follower.open(world.owner, id);
  await follower.until(({ status }) => status === "waiting");
  await world.owner.patch(`/api/v2/chats/${id}`, { archived: true });
  await set("retention_days", 1);
  const commit = store.commit.bind(store);
  let refused = 0;
  store.commit = (async (batch, ...more) => {
    if (batch.some(({ sql }) => sql.startsWith("delete from chats ")) && refused++ === 0) throw new Error("no");
    return commit(batch, ...more);
  }) as typeof store.commit;
  await pass(DAY + SWEEP_INTERVAL_MS);
  expect(refused).toBe(1);
  expect(getArchived(await look(id))).toBe(true);
  await pass(SWEEP_INTERVAL_MS);
  expect(await look(id)).toBe(404);
  expect(await count("messages")).toBe(2);
  expect(getArchived(await look(keptChat))).toBe(false);
});

testInside(
  "[RT-5] recorded model calls are deleted after a separate period, the chat is kept; 0 days is never",
  async () => {
    await using services = await openAged();
    const { world, store, clock, pass, look, set, count } = services;
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
    await store.commit([...createRun(1, clock.now()), ...createRun(2, clock.now() + DAY)]);
    await set("debug_retention_days", 0);
    await pass(DAY + SWEEP_INTERVAL_MS);
    expect(await count("chat_runs")).toBe(2);
    await set("debug_retention_days", 1);
    await pass(SWEEP_INTERVAL_MS);
    expect([await count("chat_runs"), await count("chat_run_steps")]).toEqual([1, 150]);
    expect(getArchived(await look(id))).toBe(false);
  },
);
