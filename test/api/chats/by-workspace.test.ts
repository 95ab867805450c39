// The newest chat of each workspace, as editors request it.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { Follower } from "#test/support/chats.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { createWorkspace, seedTemplate } from "#test/support/workspaces.ts";

test("[CH-31] by-workspace returns the newest unarchived own chat of each workspace", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { template_id, organization_id } = await seedTemplate(server);
  const firstWorkspace = (await createWorkspace(admin, template_id, "one")).id;
  const secondWorkspace = (await createWorkspace(admin, template_id, "two")).id;
  /** Creates a chat whose turn is over, so that its order no longer changes. */
  const start = async (workspace_id: string): Promise<Chat> => {
    const content = [{ type: "text", text: "hello" }];
    const chat = await admin.post<Chat>("/api/v2/chats", { organization_id, workspace_id, content });
    using follower = await Follower.open(admin, chat.id);
    await follower.until(({ status }) => status === "waiting");
    return chat;
  };
  const older = await start(firstWorkspace);
  const newer = await start(firstWorkspace);
  const other = await start(secondWorkspace);
  const find = (ids: string[]) => admin.get(`/api/v2/chats/by-workspace?workspace_ids=${ids.join(",")}`);
  expect(await find([firstWorkspace, secondWorkspace.toUpperCase(), uuid()])).toEqual({
    [firstWorkspace]: newer.id,
    [secondWorkspace]: other.id,
  });
  expect(await find([secondWorkspace])).toEqual({ [secondWorkspace]: other.id });
  await admin.patch(`/api/v2/chats/${newer.id}`, { archived: true });
  expect(await find([firstWorkspace])).toEqual({ [firstWorkspace]: older.id });
});
