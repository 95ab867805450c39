// Database queries of a turn: each is a round trip if the database is on another machine.
import { expect } from "bun:test";
import type { Query } from "#db/engine/sql.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { User } from "#schema/users/user.ts";
import { createChat, sendMessage } from "#test/support/chats.ts";
import { testInside } from "#test/support/inside.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { getOwnerContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

testInside(
  "[CL-53] a turn queries its owner's limits once for the message and once for the call, and all settings of the call in one query",
  async () => {
    await using world = await openModelWorld();
    const { owner, upstream, server } = world;
    await addModel(world, "openai-compat");
    const turn = async (): Promise<void> => {
      (await upstream.next()).say({ text: "well" }, { finish: "stop" }).end();
      await until(async () => (await owner.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting");
    };
    const { id } = await createChat(world, "one");
    await turn();
    const me = await owner.get<User>("/api/v2/users/me");
    const { store } = getOwnerContext(server, me.id);
    const requests: string[] = [];
    const { get, all } = store;
    const noting =
      <T>(ask: (query: Query<T>) => Promise<T>) =>
      (query: Query<T>): Promise<T> => {
        // Notification settings are queried by every sender of notifications.
        if (!String(query.params[0]).startsWith("notif")) requests.push(query.sql);
        return ask.call(store, query);
      };
    Object.assign(store, { get: noting(get as never), all: noting(all as never) });
    await sendMessage(world, id, "two");
    await turn();
    const ofSettings = requests.filter((sql) => /from "settings"/.test(sql));
    expect(ofSettings.filter((sql) => sql.includes("chat_usage_limit")).length).toBe(2);
    expect(ofSettings.filter((sql) => sql.includes("json_each")).length).toBe(1);
    const ofMembers = requests.filter(
      (sql) => !sql.includes('"settings"') && /"(?:organization|group)_members"/.test(sql),
    );
    // Whether the owner may still use models is queried before the step, which may only run tools, and before each call.
    expect(ofMembers.filter((sql) => sql.includes('"second_factor_required"')).length).toBe(2);
    expect(ofMembers.length).toBe(2);
    // The remaining queries are for the owner's compaction threshold.
    expect(ofSettings.length).toBe(4);
  },
);
