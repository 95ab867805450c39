// The newest chat of each workspace, as editors request it.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { Follower } from "#test/support/chats.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { createWorkspace, seedTemplate } from "#test/support/workspaces.ts";

test("[CH-31] by-workspace returns the caller's newest unarchived chat of each workspace", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { template_id, organization_id } = await seedTemplate(server);
  const firstWorkspace = (await createWorkspace(admin, template_id, "one")).id;
  const secondWorkspace = (await createWorkspace(admin, template_id, "two")).id;
  /** Creates a chat whose turn has ended, so that its order is final. */
  const createIdleChat = async (workspace_id: string): Promise<Chat> => {
    const content = [{ type: "text", text: "hello" }];
    const chat = await admin.post<Chat>("/api/v2/chats", { organization_id, workspace_id, content });
    using follower = await Follower.open(admin, chat.id);
    await follower.until(({ status }) => status === "waiting");
    return chat;
  };
  const older = await createIdleChat(firstWorkspace);
  const newer = await createIdleChat(firstWorkspace);
  const otherWorkspaceChat = await createIdleChat(secondWorkspace);
  const findByWorkspace = (ids: string[]) => admin.get(`/api/v2/chats/by-workspace?workspace_ids=${ids.join(",")}`);
  expect(await findByWorkspace([firstWorkspace, secondWorkspace.toUpperCase(), uuid()])).toEqual({
    [firstWorkspace]: newer.id,
    [secondWorkspace]: otherWorkspaceChat.id,
  });
  expect(await findByWorkspace([secondWorkspace])).toEqual({ [secondWorkspace]: otherWorkspaceChat.id });
  await admin.patch(`/api/v2/chats/${newer.id}`, { archived: true });
  expect(await findByWorkspace([firstWorkspace])).toEqual({ [firstWorkspace]: older.id });
});
