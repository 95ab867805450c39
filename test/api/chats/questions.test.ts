// What a turn asks of the database: each question is a wait where the database is on another machine.
import { expect, setDefaultTimeout } from "bun:test";
import type { Query } from "#db/engine/sql.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { User } from "#schema/users/user.ts";
import { createChat, sendMessage } from "#test/support/chats.ts";
import { testInside } from "#test/support/inside.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { scaled } from "#test/support/pace.ts";
import { contextOfPart } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

setDefaultTimeout(scaled(60_000));

testInside(
  "[CL-53] a turn asks for the limits of its owner once for the message and once for the call, and at once for what settings say of the call",
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
    const { store } = contextOfPart(server, me.id);
    const asked: string[] = [];
    const { get, all } = store;
    const noting =
      <T>(ask: (query: Query<T>) => Promise<T>) =>
      (query: Query<T>): Promise<T> => {
        // How notices are sent is asked for by anyone who sends them.
        if (!String(query.params[0]).startsWith("notif")) asked.push(query.sql);
        return ask.call(store, query);
      };
    Object.assign(store, { get: noting(get as never), all: noting(all as never) });
    await sendMessage(world, id, "two");
    await turn();
    const ofSettings = asked.filter((sql) => /from "settings"/.test(sql));
    expect(ofSettings.filter((sql) => sql.includes("chat_usage_limit")).length).toBe(2);
    expect(ofSettings.filter((sql) => sql.includes("json_each")).length).toBe(1);
    expect(asked.filter((sql) => !sql.includes('"settings"') && /"(?:organization|group)_members"/.test(sql))).toEqual(
      [],
    );
    // What is left is from where on the owner wants histories compacted.
    expect(ofSettings.length).toBe(4);
  },
);
