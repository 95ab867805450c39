// How long files can be restored, and when checkpoints are removed: after the server's retention, or with their chats.
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, existsSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { CHECKPOINT_DAYS, MAX_CHECKPOINTS_PER_CHAT } from "#schema/agents/checkpoint.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import { callTools, Follower, listMessages, openChat, openToolWorld } from "./world.ts";

const DAY_MS = 86_400_000;
const UNKNOWN_CHAT_ID = "33333333-3333-4333-8333-333333333333";

testNeeding(
  [needs.git],
  "[UN-9][UN-10] files can be restored for the newest 100 messages and for 30 days; checkpoints are removed with their chat",
  async () => {
    await using world = await openToolWorld();
    const { owner, home, server } = world;
    using database = new Database(join(server.directory, "slipway.db"));
    database.run("PRAGMA busy_timeout = 10000");
    const { id, call } = await openChat(world);
    using follower = await Follower.open(owner, id);
    const write = async (first: typeof call, content: string): Promise<void> => {
      const { next } = await callTools(world, first, ["write_file", { path: "notes", content }]);
      next.say("done").finish();
      await follower.until(({ status }) => status === "waiting");
    };
    const edit = async (editedId: number) => {
      const body = { content: [{ type: "text", text: "again" }], restore_files: true };
      const response = await owner.fetch("PATCH", `/api/v2/chats/${id}/messages/${editedId}`, body);
      return [response.status, ((await response.json()) as { message?: unknown }).message];
    };
    const checkpoints = join(home, ".local/state/slipway/checkpoints");
    const checkpointsPath = (chat: string): string => join(checkpoints, "chats", chat);
    const waitUntilGone = async (path: string): Promise<void> => {
      await until(() => !existsSync(path));
    };
    const expiredResponse = [
      409,
      `Files are kept for the newest ${MAX_CHECKPOINTS_PER_CHAT} messages of a chat, and for ${CHECKPOINT_DAYS} days.`,
    ];
    await write(call, "one");
    const [first] = await listMessages(owner, id);
    const messageId = first?.id ?? 0;

    const { created_at } = database.query("SELECT created_at FROM messages WHERE id = ?").get(messageId) as {
      created_at: number;
    };
    const setCreatedAt = (createdAt: number) =>
      database.run("UPDATE messages SET created_at = ? WHERE id = ?", [createdAt, messageId]);
    setCreatedAt(created_at - CHECKPOINT_DAYS * DAY_MS - 1);
    expect(await edit(messageId)).toEqual(expiredResponse);
    setCreatedAt(created_at);
    const insertMessage = database.query(
      "INSERT INTO messages (id, chat, revision, deleted, role, visibility, content, created_at) SELECT ?, chat, revision, 1, role, visibility, content, created_at FROM messages WHERE id = ?",
    );
    for (let offset = 0; offset < MAX_CHECKPOINTS_PER_CHAT; offset++)
      insertMessage.run(1_000_000_000 + offset, messageId);
    expect(await edit(messageId)).toEqual(expiredResponse);
    expect(readFileSync(join(home, "notes"), "utf8")).toBe("one");
    database.run("DELETE FROM messages WHERE id = 1000000000");
    expect(await edit(messageId)).toEqual([200, expect.anything()]);
    expect(existsSync(join(home, "notes"))).toBe(false);

    // A day later, the workspace reports the chats that have checkpoints, and the server answers which of them no longer exist.
    await write(await world.models.next(), "two");
    cpSync(checkpointsPath(id), checkpointsPath(UNKNOWN_CHAT_ID), { recursive: true });
    const yesterday = new Date(Date.now() - DAY_MS - 1_000);
    utimesSync(join(checkpoints, "tidied"), yesterday, yesterday);
    await owner.post(`/api/v2/chats/${id}/messages`, { content: [{ type: "text", text: "more" }] });
    await write(await world.models.next(), "three");
    await waitUntilGone(checkpointsPath(UNKNOWN_CHAT_ID));
    expect(existsSync(checkpointsPath(id))).toBe(true);
    expect((await owner.fetch("DELETE", `/api/v2/chats/${id}`)).status).toBe(204);
    await waitUntilGone(checkpointsPath(id));
    expect(readFileSync(join(home, "notes"), "utf8")).toBe("three");
  },
);
