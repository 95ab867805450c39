// MCP servers of organizations and workspaces in chats, with real servers.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findMcpServer } from "#db/models/mcp-servers.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import type { McpServerConfig } from "#schema/chats/mcp-server.ts";
import { Client } from "#src/client.ts";
import { toOAuthProvider } from "#src/domain/mcp/access.ts";
import type { Provider } from "#src/git/provider.ts";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { sendMessage } from "#test/support/chats.ts";
import type { ScriptedCall } from "#test/support/models/scripted-models.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { Family } from "../tools/family.ts";
import { callTools, listMessages, openChat, openToolWorld, type ToolWorld } from "../tools/world.ts";
import { startSessionHost } from "./session-host.ts";
import { type McpHost, PIXEL, startMcpHost } from "./support.ts";

let world: ToolWorld;
let host: McpHost;
let admin: Client;
let base: string;
beforeAll(async () => {
  world = await openToolWorld({ env: { SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8" } });
  host = startMcpHost();
  admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  base = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
});
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const add = (slug: string, fields: object = {}): Promise<McpServerConfig> =>
  admin.post<McpServerConfig>(base, { slug, url: `${host.url}/mcp`, ...fields });
const listToolNames = ({ request }: { request: { tools: readonly { name: string }[] } }, slug: string): string[] =>
  request.tools.map(({ name }) => name).filter((name) => name.startsWith(`${slug}__`));
const getRejectionStatus = (work: Promise<unknown>): Promise<number> =>
  work.then(
    () => 0,
    ({ status }: { status: number }) => status,
  );

/** Starts a token endpoint that issues numbered tokens and records the bodies of requests. */
const startAuthority = (expires_in: number) => {
  const requests: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      requests.push(await request.text());
      const number = requests.length;
      return Response.json({ access_token: `token-${number}`, refresh_token: `refresh-${number}`, expires_in });
    },
  });
  return {
    requests,
    port: server.port,
    url: `http://127.0.0.1:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
};

test("[MC-1] [MC-2] [MC-5] a chat has the allowed tools of its chosen and forced servers; a failing server causes a warning", async () => {
  const chosen = await add("chosen", {
    auth_type: "api_key",
    api_key: "s3cret",
    api_key_header: "X-Key",
    tool_allow_list: ["add", "echo", "fail", "long"],
    tool_deny_list: ["echo"],
    model_intent: true,
  });
  await add("usual", { availability: "default_on", transport: "sse", url: `${host.url}/sse` });
  const forced = await add("forced", { availability: "force_on", allow_in_plan_mode: true });
  await add("other");
  const broken = await add("broken", { url: "http://127.0.0.1:1/", availability: "force_on" });

  const { id, call } = await openChat(world, { mcp_server_ids: [chosen.id] });
  expect(listToolNames(call, "chosen")).toEqual(["chosen__add", "chosen__fail", "chosen__long"]);
  expect(listToolNames(call, "forced")).toContain("forced__wait");
  for (const slug of ["usual", "other", "broken"]) expect(listToolNames(call, slug)).toEqual([]);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings).toEqual([
    expect.stringContaining('The MCP server "broken" is not available: '),
  ]);
  const legacyHeaders = { headers: { "Coder-Session-Token": world.owner.token as string } };
  using stream = await world.owner.withToken(undefined).socket(`/api/v2/chats/${id}/stream`, legacyHeaders);
  const { results, next } = await callTools(
    world,
    call,
    ["chosen__add", { a: 1, b: 2, model_intent: "to know" }],
    ["chosen__fail", {}],
    ["chosen__long", {}],
    ["forced__echo", { a: 1 }],
    ["chosen__echo", {}],
  );
  // Calls of tools that the chat does not have are answered before all others.
  expect(results).toMatchObject([
    { error: 'There is no tool "chosen__echo".' },
    { output: "3" },
    { error: "that went wrong" },
    { truncated: true },
    { output: '{"a":1}' },
  ]);
  expect(JSON.stringify(results[3]).length).toBeLessThan(70_000);
  expect(host.seen.some((headers) => headers.get("x-key") === "s3cret")).toBe(true);
  const parts = (await listMessages(world.owner, id)).flatMap(({ content }) => content);
  const countPartsOf = (uuid: string) =>
    parts.filter(({ mcp_server_config_id: id }) => Bun.deepEquals(id, { uuid, valid: true })).length;
  expect([countPartsOf(chosen.id), countPartsOf(forced.id)]).toEqual([6, 2]);
  // A client that sends the upstream header gets the plain ID, also in the stream.
  const nextParts = async () =>
    (await stream.json<ChatEvent[]>()).flatMap((event) =>
      event.type === "message_part" ? [event.message_part.part] : [],
    );
  let firstServerId: unknown;
  while (firstServerId === undefined) {
    for (const { mcp_server_config_id } of await nextParts()) firstServerId ??= mcp_server_config_id;
  }
  expect(firstServerId).toBe(chosen.id);

  // In plan mode, only approved servers are available; by default, a chat starts with the servers that are on by default.
  await world.owner.patch(`/api/v2/chats/${id}`, { plan_mode: "plan" });
  const planning = await callTools(world, next, ["read_file", { path: "nothing" }]);
  expect(listToolNames(planning.next, "chosen")).toEqual([]);
  expect(listToolNames(planning.next, "forced")).toContain("forced__add");
  planning.next.finish("stop");
  const usual = await openChat(world);
  expect(listToolNames(usual.call, "usual")).toContain("usual__add");
  const sum = await callTools(world, usual.call, ["usual__add", { a: 2, b: 2 }]);
  expect(sum.results).toEqual([{ output: "4" }]);
  sum.next.finish("stop");
  const withoutServers = await openChat(world, { mcp_server_ids: [], workspace_id: undefined });
  expect(listToolNames(withoutServers.call, "usual")).toEqual([]);
  withoutServers.call.finish("stop");

  // Disabled or unknown servers cannot be selected; a chat keeps its current servers.
  await admin.patch(`${base}/${chosen.id}`, { enabled: false });
  const input = { content: [{ type: "text", text: "hi" }], mcp_server_ids: [chosen.id] };
  expect(await getRejectionStatus(world.owner.post(`/api/v2/chats/${withoutServers.id}/messages`, input))).toBe(400);
  await world.owner.post(`/api/v2/chats/${id}/messages`, input);
  (await world.models.next()).finish("stop");
  for (const serverId of [broken.id, forced.id]) await admin.delete(`${base}/${serverId}`);
});

test("[MC-1] [SB-1] [PM-3] agents of a planning chat have only approved servers, from the message that begins plan mode to the one that ends it", async () => {
  const { owner } = world;
  const read = await add("reading", { availability: "force_on", allow_in_plan_mode: true });
  const write = await add("writing", { availability: "force_on" });
  const family = new Family(world, "planner");
  const listAll = (call: ScriptedCall) => [...listToolNames(call, "reading"), ...listToolNames(call, "writing")];
  const tryWriting = async (call: ScriptedCall, prompt: string) => {
    call.callTool("write", "writing__add", { a: 1, b: 2 }).finish("tool_calls");
    const next = await family.call(prompt);
    return { next, result: next.request.messages.at(-1)?.content[0]?.result };
  };
  const root = await family.root({ workspace_id: world.seeded.workspace_id, plan_mode: "plan" });
  const explorer = await family.spawn(root.call, "explore it", { type: "explore" });
  expect(explorer.result).toMatchObject({ type: "explore" });
  expect((await owner.get<Chat>(`/api/v2/chats/${explorer.id}`)).plan_mode).toBe("plan");
  expect(listAll(explorer.call)).toContain("reading__add");
  expect(listToolNames(explorer.call, "writing")).toEqual([]);
  const refused = await tryWriting(explorer.call, "explore it");
  expect(refused.result).toEqual({ error: 'There is no tool "writing__add".' });

  // Plan mode ends for agents that run, and begins for agents of any type.
  await sendMessage(world, root.id, "go ahead", { plan_mode: "" });
  const allowed = await tryWriting(refused.next, "explore it");
  expect(allowed.result).toEqual({ error: 'There is no tool "writing__add".' });
  const used = await tryWriting(allowed.next, "explore it");
  expect(used.result).toEqual({ output: "3" });
  used.next.finish();
  explorer.next.finish();
  const worker = await family.spawn(await family.call("planner"), "build it");
  expect(listAll(worker.call)).toContain("writing__add");
  await sendMessage(world, root.id, "no, plan first", { plan_mode: "plan" });
  // The tool was offered before the message.
  const stopped = await tryWriting(worker.call, "build it");
  expect(stopped.result).toEqual({ error: 'The tool "writing__add" cannot be used in this chat now.' });
  expect(listToolNames(stopped.next, "writing")).toEqual([]);
  stopped.next.finish();
  worker.next.finish();
  (await family.call("planner")).finish();
  for (const { id } of [read, write]) await admin.delete(`${base}/${id}`);
});

test("[MC-13] offers the model a tool that a server adds during a turn, in the same turn and in later chats", async () => {
  await using growing = startSessionHost();
  const { id } = await add("growing", { url: growing.url, availability: "force_on" });
  const { call } = await openChat(world);
  expect(listToolNames(call, "growing")).not.toContain("growing__late");
  let { next } = await callTools(world, call, ["growing__grow"]);
  // The notification uses a separate stream, so it may arrive after the response.
  for (let steps = 0; steps < 20 && !listToolNames(next, "growing").includes("growing__late"); steps++)
    ({ next } = await callTools(world, next, ["growing__hello"]));
  expect(listToolNames(next, "growing")).toContain("growing__late");
  next.finish("stop");
  const later = await openChat(world);
  expect(listToolNames(later.call, "growing")).toContain("growing__late");
  later.call.finish("stop");
  await admin.delete(`${base}/${id}`);
});

test("[MC-8] secrets are write-only and never sent to another origin; errors name invalid fields", async () => {
  const headers = { "X-One": "hidden-1" };
  const created = await add("sealed", { auth_type: "custom_headers", custom_headers: headers });
  expect(created).toMatchObject({ has_secret: true, custom_header_names: ["X-One"], availability: "default_off" });
  const responses = JSON.stringify([created, await admin.get(base), await world.owner.get(base)]);
  expect(responses).not.toContain("hidden-1");
  expect(await admin.patch(`${base}/${created.id}`, { display_name: "x" })).toMatchObject({ has_secret: true });
  const updated = await admin.patch(`${base}/${created.id}`, { url: "https://elsewhere.invalid/mcp" });
  expect(updated).toMatchObject({ custom_header_names: [] });
  const invalid: [object, string][] = [
    [{ slug: "A b", url: host.url }, "slug"],
    [{ slug: "a__b", url: host.url }, "slug"],
    [{ slug: "n1", url: "ftp://x" }, "url"],
    [{ slug: "n1", url: "https://u:p@x" }, "url"],
    [{ slug: "n1", url: host.url, transport: "carrier" }, "transport"],
    [{ slug: "n1", url: host.url, auth_type: "user_oidc" }, "auth_type"],
    [{ slug: "n1", url: host.url, auth_type: "api_key" }, "api_key"],
    [{ slug: "n1", url: host.url, auth_type: "oauth2" }, "oauth2"],
    [{ slug: "n1", url: host.url, auth_type: "custom_headers", custom_headers: { Host: "x" } }, "custom_headers"],
    [{ slug: "n1", url: host.url, availability: "sometimes" }, "availability"],
  ];
  for (const [body, field] of invalid) {
    const response = await admin.fetch("POST", base, body);
    expect([field, response.status]).toEqual([field, 400]);
    expect(await response.text()).toContain(`"field":"${field}"`);
  }
  expect(await getRejectionStatus(add("sealed"))).toBe(409);
});

test("[MC-8] masks a key that a server repeats in an answer or an error", async () => {
  const key = "canary-key-778899";
  const keyed = await add("keyed", { auth_type: "api_key", api_key: key, api_key_header: "X-Key" });
  const named = await add("named", {
    auth_type: "custom_headers",
    custom_headers: { "X-Token": `Token ${key}-named` },
  });
  const { id, call } = await openChat(world, { mcp_server_ids: [keyed.id, named.id] });
  const { results, next } = await callTools(
    world,
    call,
    ["keyed__echo", { a: key }],
    ["named__echo", { a: `${key}-named` }],
  );
  expect(results).toMatchObject([{ output: '{"a":"[hidden]"}' }, { output: '{"a":"[hidden]"}' }]);
  host.refuse = () => Response.json({ message: `no such key: ${key}` }, { status: 403 });
  const failed = await callTools(world, next, ["keyed__echo", { a: 1 }]);
  host.refuse = undefined;
  expect(failed.results).toMatchObject([{ error: expect.stringContaining("no such key: [hidden]") }]);
  failed.next.finish("stop");
  // The arguments of a call are the model's own text.
  const answers = (await listMessages(world.owner, id))
    .flatMap(({ content }) => content)
    .filter(({ type }) => type === "tool-result");
  expect(JSON.stringify([answers, (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings])).not.toContain(key);
});

test("[MC-9] with OAuth, users have their own tokens, refreshed before they expire; a chat omits the server until sign-in", async () => {
  await using authority = startAuthority(30);
  const { requests, url: authorityUrl } = authority;
  const oauth2 = {
    client_id: "c",
    auth_url: `${authorityUrl}/in`,
    token_url: `${authorityUrl}/token`,
    scopes: ["use"],
  };
  const server = await add("signed", { auth_type: "oauth2", oauth2, oauth2_client_secret: "shh" });
  const path = `${base}/${server.id}`;
  expect(await world.owner.get(path)).toMatchObject({ auth_connected: false });
  const beforeSignIn = await openChat(world, { mcp_server_ids: [server.id], workspace_id: undefined });
  expect(listToolNames(beforeSignIn.call, "signed")).toEqual([]);
  beforeSignIn.call.finish("stop");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${beforeSignIn.id}`)).warnings[0]).toContain(
    "must sign in to it first",
  );

  const { url } = await world.owner.post<{ url: string }>(`${path}/oauth2/start`, {});
  const parameters = new URL(url).searchParams;
  expect(Object.fromEntries(parameters)).toMatchObject({ client_id: "c", scope: "use", code_challenge_method: "S256" });
  const redirectUrl = new URL(parameters.get("redirect_uri") ?? "");
  const query = new URLSearchParams({ code: "code-1", state: parameters.get("state") ?? "" });
  expect((await admin.fetch("GET", `${redirectUrl.pathname}?${query}`)).status).toBe(400);
  const completion = await world.owner.fetch("GET", `${redirectUrl.pathname}?${query}`);
  expect([completion.status, await completion.text()]).toEqual([
    200,
    expect.stringContaining("You are signed in at signed."),
  ]);
  expect(requests[0]).toContain("client_secret=shh");
  expect(await world.owner.get(path)).toMatchObject({ auth_connected: true });
  expect(await admin.get(path)).toMatchObject({ auth_connected: false });
  const afterSignIn = await openChat(world, { mcp_server_ids: [server.id], workspace_id: undefined });
  expect(listToolNames(afterSignIn.call, "signed")).toContain("signed__add");
  afterSignIn.call.finish("stop");
  // The token expires within a minute, so it was refreshed immediately.
  expect(host.seen.at(-1)?.get("authorization")).toMatch(/^Bearer token-[2-9]/);
  expect(requests.some((text) => text.includes("refresh_token=refresh-1"))).toBe(true);
  await world.owner.delete(`${path}/oauth2`);
  expect(await world.owner.get(path)).toMatchObject({ auth_connected: false });

  const secondStart = await world.owner.post<{ url: string }>(`${path}/oauth2/start`, {});
  const secondState = new URL(secondStart.url).searchParams.get("state");
  const requestCount = requests.length;
  // The second change is to another tenant of the same origin.
  for (const change of [
    { token_url: `http://localhost:${authority.port}/token` },
    { token_url: `${authorityUrl}/other/token` },
    { client_id: "other" },
  ]) {
    const restored = await admin.patch(path, { oauth2, oauth2_client_secret: "shh" });
    expect(restored).toMatchObject({ has_secret: true });
    expect(await admin.patch(path, { oauth2: { ...oauth2, scopes: [] } })).toMatchObject({ has_secret: true });
    expect(await admin.patch(path, { oauth2: { ...oauth2, ...change } })).toMatchObject({ has_secret: false });
    const lateResponse = await world.owner.fetch("GET", `${redirectUrl.pathname}?code=code-2&state=${secondState}`);
    expect([lateResponse.status, await lateResponse.text()]).toEqual([
      400,
      expect.stringContaining("have changed since"),
    ]);
  }
  expect(requests).toHaveLength(requestCount);
});

test("[MC-8] a call that started before a server moved does not use tokens for its new URL", async () => {
  const { store, encryption, links } = getContext(world.server);
  const oauth2 = { client_id: "c", auth_url: `${host.url}/in`, token_url: `${host.url}/token`, scopes: [] };
  const { id } = await add("moving", { auth_type: "oauth2", oauth2, url: "http://127.0.0.1:1/mcp" });
  const readProvider = async () => {
    const row = await store.get(findMcpServer({ organization_id: world.organization_id, id }));
    return toOAuthProvider(encryption, row as NonNullable<typeof row>) as Provider;
  };
  const oldProvider = await readProvider();
  await admin.patch(`${base}/${id}`, { url: `${host.url}/mcp` });
  const newProvider = await readProvider();
  const { id: user_id } = await world.owner.get<{ id: string }>("/api/v2/users/me");
  const tokens = { access_token: "a", refresh_token: "r", token_extra: {}, expires_in: 3_600 };
  await links.put(user_id, newProvider, tokens);
  expect(await links.getLiveToken(user_id, newProvider)).toMatchObject({ access_token: "a" });
  expect(await links.renew(user_id, oldProvider, "refused")).toBeUndefined();
  expect(await links.getLiveToken(user_id, oldProvider)).toBeUndefined();
  // An expired token is not refreshed at the old URL either.
  await links.put(user_id, newProvider, { ...tokens, expires_in: 1 });
  expect(await links.getLiveToken(user_id, oldProvider)).toBeUndefined();
});

test("[MC-9] refreshes a token that the server refuses early, once, and repeats the call", async () => {
  await using authority = startAuthority(3_600);
  const { requests, url: authorityUrl } = authority;
  await using strict = startMcpHost();
  let refusedHeader = "Bearer token-1";
  strict.refuse = ({ headers }) =>
    headers.get("authorization") === refusedHeader ? new Response("", { status: 401 }) : undefined;
  const oauth2 = { client_id: "c", auth_url: `${authorityUrl}/in`, token_url: `${authorityUrl}/token`, scopes: [] };
  const settings = { url: `${strict.url}/mcp`, auth_type: "oauth2", oauth2, oauth2_client_secret: "shh" };
  const server = await add("early", settings);
  const { url } = await world.owner.post<{ url: string }>(`${base}/${server.id}/oauth2/start`, {});
  const parameters = new URL(url).searchParams;
  const redirectUrl = new URL(parameters.get("redirect_uri") ?? "");
  await world.owner.fetch("GET", `${redirectUrl.pathname}?code=1&state=${parameters.get("state")}`);
  const { call } = await openChat(world, { mcp_server_ids: [server.id], workspace_id: undefined });
  expect(listToolNames(call, "early")).toContain("early__add");
  expect(requests.at(-1)).toContain("refresh_token=refresh-1");
  // The same happens in the middle of a chat.
  refusedHeader = "Bearer token-2";
  const { results, next } = await callTools(world, call, ["early__add", { a: 1, b: 2 }]);
  expect(results).toMatchObject([{ output: "3" }]);
  expect(requests.at(-1)).toContain("refresh_token=refresh-2");
  next.finish("stop");
});

test("[MC-6] servers that a workspace declares run there and can be called, until it no longer declares them", async () => {
  const program = { command: process.execPath, args: [join(import.meta.dir, "support.ts")] };
  const writeMcpConfig = (mcpServers: object): void => {
    const path = join(world.home, ".mcp.json");
    mkdirSync(world.home, { recursive: true });
    writeFileSync(`${path}.new`, JSON.stringify({ mcpServers }));
    renameSync(`${path}.new`, path);
  };
  await add("owned");
  writeMcpConfig({
    local: program,
    Owned: program,
    web: { type: "http", url: `${host.url}/mcp` },
    lost: { command: "/no/such/program" },
    "bad name": { command: "x" },
    off: { ...program, disabled: true },
  });
  /** Returns a chat's first call once its model is offered the expected tools. */
  const openChatWhen = async (matches: (names: string[], warnings: readonly string[]) => boolean) => {
    for (;;) {
      const chat = await openChat(world, { mcp_server_ids: [] });
      const names = chat.call.request.tools.map(({ name }) => name);
      const { warnings = [] } = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
      if (matches(names, warnings)) return chat;
      chat.call.finish("stop");
    }
  };
  // Names of the organization's servers are reserved, even if the chat has not selected those servers.
  const takenWarning =
    'The MCP server "Owned" of the workspace is not available: your organization has a server of this name.';
  const { id, call } = await openChatWhen(
    (names, warnings) => names.includes("local__add") && names.includes("web__add") && warnings.includes(takenWarning),
  );
  expect(call.request.tools.filter(({ name }) => /^owned__/i.test(name))).toEqual([]);
  const { results, next } = await callTools(
    world,
    call,
    ["local__add", { a: 20, b: 22 }],
    ["local__pid", {}],
    ["web__fail", {}],
    ["local__none", {}],
  );
  const pid = Number(String(results[2]?.output).split(" ")[0]);
  expect(results).toMatchObject([
    { error: 'There is no tool "local__none".' },
    { output: "42" },
    { output: expect.stringContaining(world.home) },
    { error: "that went wrong" },
  ]);
  await world.owner.put<unknown>(`/api/v2/chats/${id}/context`, {});
  const { context } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  const servers = context?.resources.filter(({ kind }) => kind === "mcp_server") ?? [];
  expect(servers.map(({ source, status }) => `${source} ${status}`)).toEqual([
    "Owned ok",
    "bad name invalid",
    "local ok",
    "lost unreadable",
    "web ok",
  ]);
  expect(servers[2]?.tools?.[0]).toEqual({ name: "add", description: "The tool add." });

  process.kill(pid, "SIGKILL");
  // A call that reaches the old process fails; the next call restarts the server.
  let retry = await callTools(world, next, ["local__pid", {}]);
  if (retry.results[0]?.error !== undefined) retry = await callTools(world, retry.next, ["local__pid", {}]);
  const newPid = Number(String(retry.results[0]?.output).split(" ")[0]);
  expect(newPid).toBeGreaterThan(0);
  expect(newPid).not.toBe(pid);
  writeMcpConfig({});
  const without = await openChatWhen((names) => !names.includes("local__add"));
  expect(listToolNames(without.call, "web")).toEqual([]);
  without.call.finish("stop");
  await until(() => !isAlive(newPid));
  const afterRemoval = await callTools(world, retry.next, ["local__add", { a: 1 }]);
  expect(afterRemoval.results).toMatchObject([{ error: expect.stringContaining("local__add") }]);
  afterRemoval.next.finish("stop");
});

test("[MC-3] [DT-5] images from a tool become files of the chat and reach the model; file IDs from a server have no effect", async () => {
  const painter = await add("painter");
  const { id, call } = await openChat(world, { mcp_server_ids: [painter.id] });
  const { results, next } = await callTools(world, call, ["painter__picture"]);
  const files = results[0]?.files as { file_id: string; media_type: string }[];
  expect(files).toMatchObject([{ media_type: "image/png" }, { media_type: "image/png" }]);
  expect(new Set(files.map(({ file_id }) => file_id)).size).toBe(2);
  const picture = await world.owner.fetch("GET", `/api/v2/chats/files/${files[1]?.file_id}`);
  expect(Buffer.from(await picture.arrayBuffer()).toString("base64")).toBe(PIXEL);
  const lastPart = next.request.messages.at(-1)?.content[0];
  expect(lastPart).toMatchObject({ is_media: true, result: { output: expect.stringContaining("look"), files } });
  next.say("I see.").finish();
  const chat = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  expect((chat.files ?? []).map(({ name }) => name).sort()).toEqual([
    "painter__picture-1.png",
    "painter__picture-2.png",
  ]);
});
