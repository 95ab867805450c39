// Restoring files in a forked chat, from the checkpoints of its copied messages.
import { expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import { callTools, Follower, listMessages, openChat, openToolWorld } from "./world.ts";

testNeeding(
  [needs.git],
  "[UN-14] a fork restores a copied message's files after the original was deleted, and warns if the workspace is unreachable",
  async () => {
    await using world = await openToolWorld();
    const { owner, home } = world;
    const notes = join(home, "notes");
    writeFileSync(notes, "zero");
    const { id, call } = await openChat(world);
    {
      using follower = await Follower.open(owner, id);
      const { next } = await callTools(world, call, ["write_file", { path: "notes", content: "one" }]);
      next.say("done").finish();
      await follower.until(({ status }) => status === "waiting");
    }
    const fork = (chat: string): Promise<Chat> => owner.post<Chat>(`/api/v2/chats/${chat}/fork`, {});
    const firstFork = await fork(id);
    const [first] = await listMessages(owner, firstFork.id);
    const chats = join(home, ".local/state/slipway/checkpoints/chats");
    await until(() => existsSync(join(chats, firstFork.id, `${first?.id}.json`)));
    await owner.fetch("DELETE", `/api/v2/chats/${id}`);
    await until(() => !existsSync(join(chats, id)));
    const secondFork = await fork(firstFork.id);
    const content = [{ type: "text", text: "again" }];
    const body = { content, restore_files: true };
    const edited = await owner.fetch("PATCH", `/api/v2/chats/${firstFork.id}/messages/${first?.id}`, body);
    expect([edited.status, readFileSync(notes, "utf8")]).toEqual([200, "zero"]);

    await world.daemon[Symbol.asyncDispose]();
    const unreachableFork = await fork(secondFork.id);
    await until(async () => {
      const { warnings = [] } = await owner.get<Chat>(`/api/v2/chats/${unreachableFork.id}`);
      return warnings.some((warning) => warning.startsWith("Undo does not cover the copied messages"));
    });
  },
);
