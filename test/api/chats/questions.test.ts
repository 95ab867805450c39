// The number of database queries of a turn. Each is a round trip if the database is on another machine.
import { expect } from "bun:test";
import type { Query } from "#db/engine/sql.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { User } from "#schema/users/user.ts";
import { createChat, sendMessage } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { getOwnerContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

testInProcess(
  "[CL-53] a turn reads its owner's limits once per message and once per call, and other settings in one query",
  async () => {
    await using world = await openModelWorld();
    const { owner, upstream, server } = world;
    await addModel(world, "openai-compat");
    const runTurn = async (): Promise<void> => {
      (await upstream.next()).say({ text: "well" }, { finish: "stop" }).end();
      await until(async () => (await owner.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting");
    };
    const { id } = await createChat(world, "one");
    await runTurn();
    const me = await owner.get<User>("/api/v2/users/me");
    const { store } = getOwnerContext(server, me.id);
    const queries: string[] = [];
    const { get, all } = store;
    const record =
      <T>(run: (query: Query<T>) => Promise<T>) =>
      (query: Query<T>): Promise<T> => {
        // Every sender of notifications queries the notification settings.
        if (!String(query.params[0]).startsWith("notif")) queries.push(query.sql);
        return run.call(store, query);
      };
    Object.assign(store, { get: record(get as never), all: record(all as never) });
    await sendMessage(world, id, "two");
    await runTurn();
    const settingsQueries = queries.filter((sql) => /from "settings"/.test(sql));
    expect(settingsQueries.filter((sql) => sql.includes("chat_usage_limit")).length).toBe(2);
    expect(settingsQueries.filter((sql) => sql.includes("json_each")).length).toBe(1);
    const memberQueries = queries.filter(
      (sql) => !sql.includes('"settings"') && /"(?:organization|group)_members"/.test(sql),
    );
    // Permission to use models is queried before the step, which may only run tools, and before each call.
    expect(memberQueries.filter((sql) => sql.includes('"second_factor_required"')).length).toBe(2);
    expect(memberQueries.length).toBe(2);
    // The remaining queries are for the owner's compaction threshold.
    expect(settingsQueries.length).toBe(4);
  },
);
