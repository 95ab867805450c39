// The limits of applications on chats and their permissions.
import { afterAll, expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat } from "#test/support/chats.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { fetchStatus } from "../users/people.ts";
import { openOAuth2 } from "./world.ts";

const world = await openOAuth2();
afterAll(() => world[Symbol.asyncDispose]());
const { models, server, admin, seeded, ada, createRequest, getTokens } = world;

test("[OA-23] an application starts chats with no more permissions than the person's new chats", async () => {
  await ada.put("/api/v2/chats/config/user-permissions", { permissions: { default: "ask_changes", rules: [] } });
  const { access_token } = await getTokens(createRequest({ scope: "chat:create" }));
  const program = ada.withToken(access_token);
  const start = (body: object) =>
    fetchStatus(program, "POST", "/chats", {
      organization_id: seeded.organization_id,
      content: [{ type: "text", text: "hello" }],
      ...body,
    });
  expect(await start({ permission_mode: "allow" })).toBe(403);
  expect(await start({ permissions: { default: "allow", rules: [] } })).toBe(403);
  expect(await start({ permission_mode: "plan" })).toBe(201);
  expect(await start({})).toBe(201);
  await ada.put("/api/v2/chats/config/user-permissions", { permissions: null });
});

test("[OA-23] [PE-12] an application's chat on the server's own machine always asks for approval", async () => {
  const { workspace_id } = seeded;
  const setProvisioner = (name: string) =>
    getContext(server).store.commit([
      {
        sql: "update templates set provisioner = ? where id = (select template_id from workspaces where id = ?)",
        rows: [[name, workspace_id]],
      },
    ]);
  await setProvisioner("local");
  const scope = "chat:create chat:read chat:update";
  const program = ada.withToken((await getTokens(createRequest({ scope }))).access_token);
  const ownersProgram = admin.withToken((await getTokens(createRequest({ scope }), admin)).access_token);
  const startChat = async (client: typeof ada, organization_id: string, body: object = {}): Promise<Chat> => {
    const content = [{ type: "text", text: "hello" }];
    const chat = await client.post<Chat>("/api/v2/chats", { organization_id, content, ...body });
    // Frees the slot of the turn for later tests.
    const owner = client === ownersProgram ? admin : ada;
    await owner.post(`/api/v2/chats/${chat.id}/interrupt`);
    return chat;
  };
  const { organization_id } = seeded;
  expect((await startChat(program, organization_id, { workspace_id })).permission_mode).toBe("ask");
  expect((await startChat(ada, organization_id, { workspace_id })).permission_mode).toBe("allow");
  const allow = { workspace_id, permission_mode: "allow" };
  await expect(startChat(program, organization_id, allow)).rejects.toMatchObject({ status: 403 });
  const { id, permission_mode } = await startChat(program, organization_id);
  expect(permission_mode).toBe("allow");
  expect(await fetchStatus(program, "PATCH", `/chats/${id}`, allow)).toBe(403);
  await program.patch(`/api/v2/chats/${id}`, { workspace_id });
  expect((await ada.get<Chat>(`/api/v2/chats/${id}`)).permission_mode).toBe("ask");
  // The model of an owner's chat can create a workspace there.
  const user = await admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
  expect((await startChat(ownersProgram, user.organization_ids[0] ?? "")).permission_mode).toBe("ask");
  await setProvisioner("echo");
});

test("[OA-23] an application approves a start with parameter values only with the scope to run programs", async () => {
  const { id } = await createChat({ owner: ada, organization_id: seeded.organization_id }, "start it", {
    workspace_id: seeded.workspace_id,
    permission_mode: "ask",
  });
  let call = await models.next();
  while (call.prompt !== "start it") call = await models.next();
  call.callTool("values", "start_workspace", { parameters: { startup: "evil" } });
  call.callTool("plain", "start_workspace", {}).finish("tool_calls");
  await until(async () => (await ada.get<Chat>(`/api/v2/chats/${id}`)).status === "requires_action");
  const answer = async (scope: string, values: "allow" | "deny") => {
    const program = ada.withToken((await getTokens(createRequest({ scope }))).access_token);
    const answers = [
      { tool_call_id: "values", decision: values },
      { tool_call_id: "plain", decision: "allow" },
    ];
    return fetchStatus(program, "POST", `/chats/${id}/permissions`, { answers });
  };
  expect(await answer("chat:update", "allow")).toBe(403);
  expect(await answer("chat:update", "deny")).toBe(204);
  expect(await answer("chat:update", "deny")).toBe(409);
});

test("[OA-23] an application approves a new workspace only with the scopes to create it", async () => {
  const { id } = await createChat({ owner: ada, organization_id: seeded.organization_id }, "make it", {
    permission_mode: "ask",
  });
  let call = await models.next();
  while (call.prompt !== "make it") call = await models.next();
  const args = { template_id: crypto.randomUUID(), name: "made", parameters: { startup: "evil" } };
  call.callTool("made", "create_workspace", args).finish("tool_calls");
  await until(async () => (await ada.get<Chat>(`/api/v2/chats/${id}`)).status === "requires_action");
  const answer = async (scope: string, decision: "allow" | "deny") => {
    const program = ada.withToken((await getTokens(createRequest({ scope }))).access_token);
    return fetchStatus(program, "POST", `/chats/${id}/permissions`, { answers: [{ tool_call_id: "made", decision }] });
  };
  for (const scope of ["chat:update", "chat:update workspace:create", "chat:update template:use"])
    expect([scope, await answer(scope, "allow")]).toEqual([scope, 403]);
  expect(await answer("chat:update workspace:create template:use", "allow")).toBe(204);
});

test("[OA-23] an application can only make a chat's permissions stricter", async () => {
  const { id } = await createChat({ owner: ada, organization_id: seeded.organization_id }, "hello", {
    permission_mode: "accept_edits",
  });
  const { access_token } = await getTokens(createRequest({ scope: "coder:all" }));
  const program = ada.withToken(access_token);
  const change = (client: typeof ada, body: object) => fetchStatus(client, "PATCH", `/chats/${id}`, body);
  expect(await change(program, { permission_mode: "allow" })).toBe(403);
  expect(
    await change(program, { permissions: { default: "ask", rules: [{ tool: "execute", action: "allow" }] } }),
  ).toBe(403);
  const always = { answers: [{ tool_call_id: "c", decision: "allow", scope: "always" }] };
  expect(await fetchStatus(program, "POST", `/chats/${id}/permissions`, always)).toBe(403);
  for (const permission_mode of ["accept_edits", "ask", "plan"])
    expect([permission_mode, await change(program, { permission_mode })]).toEqual([permission_mode, 204]);
  expect(await change(program, { permission_mode: "accept_edits" })).toBe(403);
  expect(await change(program, { title: "Renamed" })).toBe(204);
  // Plan mode is the strictest mode, so an application cannot end it.
  expect(await change(ada, { permission_mode: "plan" })).toBe(204);
  expect(await change(program, { plan_mode: "" })).toBe(403);
  expect(await change(program, { permission_mode: "ask" })).toBe(403);
  expect(
    await fetchStatus(program, "POST", `/chats/${id}/messages`, {
      content: [{ type: "text", text: "go" }],
      plan_mode: "",
    }),
  ).toBe(403);
  expect(await change(ada, { permission_mode: "allow" })).toBe(204);
});
