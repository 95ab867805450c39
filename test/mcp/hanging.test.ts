// Unresponsive MCP servers in an organization's chats, and addresses that are not allowed.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN } from "#test/support/server.ts";
import { startMcpHost } from "./support.ts";

type World = Awaited<ReturnType<typeof openChatWorld>>;

const signInAdmin = (world: World) => new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
const getServersPath = (world: World) => `/api/v2/organizations/${world.organization_id}/mcp-servers`;
const findWarnings = ({ events }: Follower): string[] | undefined =>
  events
    .flatMap((event) => (event.type === "status" && event.status.warnings ? [[...event.status.warnings]] : []))
    .at(-1);

/** A server that accepts every request and responds only when released. */
const startHanging = () => {
  const host = startMcpHost();
  let isHanging = true;
  let requestCount = 0;
  const waiters: { readonly count: number; readonly resolve: () => void }[] = [];
  const gate = Promise.withResolvers<void>();
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      requestCount += 1;
      for (const { count, resolve } of waiters) if (requestCount >= count) resolve();
      if (isHanging) await gate.promise;
      const { method, headers } = request;
      const body = method === "POST" ? await request.text() : undefined;
      return fetch(`${host.url}/mcp`, { method, headers, ...(body === undefined ? {} : { body }) });
    },
  });
  return {
    url: `http://127.0.0.1:${proxy.port}/mcp`,
    get requestCount() {
      return requestCount;
    },
    /** Resolves when this many requests have arrived. */
    waitForRequests: (count: number): Promise<void> =>
      new Promise((resolve) => {
        if (requestCount >= count) resolve();
        else waiters.push({ count, resolve });
      }),
    /** Answers new requests, and keeps earlier ones waiting. */
    answerNew: () => {
      isHanging = false;
    },
    /** Answers new and waiting requests. */
    release: () => {
      isHanging = false;
      gate.resolve();
    },
    async [Symbol.asyncDispose]() {
      await proxy.stop(true);
      await host[Symbol.asyncDispose]();
    },
  };
};

test("[MC-4] [MC-5] a hanging server delays only one turn, is retried with growing delays, and is reported in the stream", async () => {
  const clock = new ManualClock();
  await using world = await openChatWorld({ clock });
  await using hanging = startHanging();
  await using quick = startMcpHost();
  const admin = await signInAdmin(world);
  await admin.post(getServersPath(world), { slug: "quick", url: `${quick.url}/mcp`, availability: "force_on" });
  await createChat(world, "connects to the quick server");
  (await world.models.next()).finish("stop");
  await admin.post(getServersPath(world), { slug: "slow", url: hanging.url, availability: "force_on" });
  const chat = await createChat(world, "one");
  using follower = await Follower.open(world.owner, chat.id);
  /** Finishes the next model call and returns the servers whose tools it offered. */
  const finishCallAndListServers = async () => {
    const call = await world.models.next();
    const names = call.request.tools.map(({ name }) => name);
    call.say("ok").finish("stop");
    await follower.until(({ status }) => status === "waiting");
    return ["slow", "quick"].filter((slug) => names.some((name) => name.startsWith(`${slug}__`)));
  };
  const sendAndAwaitTurn = async (text: string) => {
    await sendMessage(world, chat.id, text);
    await follower.until(({ status }) => status === "running");
  };

  await clock.timerIn(3_000);
  clock.advance(1_000);
  await follower.until((state) => findWarnings(state)?.includes('The chat waits for the MCP server "slow".') === true);
  clock.advance(2_000);
  expect(await finishCallAndListServers()).toEqual(["quick"]);
  const expectedWarnings = [
    expect.stringContaining('The MCP server "slow" is not available: it did not answer within 3 s'),
  ];
  expect(findWarnings(follower)).toEqual(expectedWarnings);
  using lateFollower = await Follower.open(world.owner, chat.id);
  await lateFollower.until((state) => findWarnings(state) !== undefined);
  expect(findWarnings(lateFollower)).toEqual(expectedWarnings);

  // The next turn does not wait while the connection is still being opened, or directly after it has failed.
  await sendAndAwaitTurn("two");
  expect(await finishCallAndListServers()).toEqual(["quick"]);
  clock.advance(27_001);
  await sendAndAwaitTurn("three");
  expect(await finishCallAndListServers()).toEqual(["quick"]);
  const requestsBefore = hanging.requestCount;
  clock.advance(29_000);
  await sendAndAwaitTurn("four");
  expect(await finishCallAndListServers()).toEqual(["quick"]);
  expect(hanging.requestCount).toBe(requestsBefore);

  // After half a minute, the server is retried, and the turn waits for two seconds. The next retry is a minute later.
  clock.advance(2_000);
  await sendAndAwaitTurn("five");
  await clock.timerIn(2_000);
  await hanging.waitForRequests(requestsBefore + 1);
  clock.advance(2_000);
  expect(await finishCallAndListServers()).toEqual(["quick"]);
  expect(hanging.requestCount).toBe(requestsBefore + 1);
  clock.advance(28_001);
  hanging.answerNew();
  await sendAndAwaitTurn("six");
  clock.advance(45_000);
  expect(await finishCallAndListServers()).toEqual(["quick"]);
  expect(hanging.requestCount).toBe(requestsBefore + 1);
  clock.advance(16_000);
  await sendAndAwaitTurn("seven");
  expect(await finishCallAndListServers()).toEqual(["slow", "quick"]);
  expect(findWarnings(follower)).toEqual([]);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`)).warnings).toEqual([]);
});

test("[MC-4] a server that is late for a turn's first step is available for its second", async () => {
  const clock = new ManualClock();
  await using world = await openChatWorld({ clock });
  await using slow = startHanging();
  await using silent = startHanging();
  const admin = await signInAdmin(world);
  await admin.post(getServersPath(world), { slug: "slow", url: slow.url, availability: "force_on" });
  await admin.post(getServersPath(world), { slug: "never", url: silent.url, availability: "force_on" });
  await createChat(world, "one");
  // The turn waits for both servers at the same time.
  await clock.timerIn(3_000);
  await Promise.all([slow.waitForRequests(1), silent.waitForRequests(1)]);
  clock.advance(3_000);
  let call = await world.models.next();
  const listSlowTools = () => call.request.tools.map(({ name }) => name).filter((name) => /^(slow|never)__/.test(name));
  expect(listSlowTools()).toEqual([]);
  slow.release();
  for (let step = 1; listSlowTools().length === 0; step += 1) {
    call.callTool(`call-${step}`, "list_templates").finish("tool_calls");
    call = await world.models.next();
  }
  expect(listSlowTools()).toContain("slow__add");
  expect(listSlowTools().some((name) => name.startsWith("never__"))).toBe(false);
  call.finish("stop");
});

test("[MC-7] MCP servers may be on loopback while only this machine uses the Slipway server", async () => {
  await using world = await openChatWorld();
  await using host = startMcpHost();
  const admin = await signInAdmin(world);
  await admin.post(getServersPath(world), { slug: "near", url: `${host.url}/mcp`, availability: "force_on" });
  await createChat(world, "hello");
  const call = await world.models.next();
  expect(call.request.tools.map(({ name }) => name)).toContain("near__add");
  call.finish("stop");
});

const PRIVATE_URLS = [
  ...["http://10.1.2.3/", "http://172.16.0.1/", "http://172.31.9.9/mcp", "http://192.168.1.1/", "http://100.64.0.1/"],
  ...["http://[fd00::1]/", "http://[::ffff:10.1.2.3]/", "http://0x0a010203/"],
];

test("[MC-7] [MC-10] refuses private addresses on servers that others use, and metadata services on every server", async () => {
  await using world = await openChatWorld({ env: { SLIPWAY_ACCESS_URL: "https://slipway.example" } });
  await using localWorld = await openChatWorld();
  const admin = await signInAdmin(world);
  const path = getServersPath(world);
  const add = async (client: Client, path: string, slug: string, url: string, fields: object = {}) => {
    const response = await client.fetch("POST", path, { slug, url, ...fields });
    return [response.status, (await response.text()).match(/"field":"([^"]*)"/)?.[1]];
  };
  for (const url of ["http://127.0.0.1:9/mcp", "http://localhost:9/mcp", "http://[::1]/", ...PRIVATE_URLS]) {
    expect([url, ...(await add(admin, path, "near", url))]).toEqual([url, 400, "url"]);
  }
  const oauth2 = {
    client_id: "c",
    auth_url: "https://a.invalid/in",
    token_url: "http://127.0.0.1:9/token",
    scopes: [],
  };
  const withOAuth = { auth_type: "oauth2", oauth2 };
  expect(await add(admin, path, "signed", "https://mcp.invalid/", withOAuth)).toEqual([400, "oauth2.token_url"]);
  const metadata = "http://169.254.169.254/latest";
  expect(await add(await signInAdmin(localWorld), getServersPath(localWorld), "metadata", metadata)).toEqual([
    400,
    "url",
  ]);

  const { id } = await admin.post<{ id: string }>(path, { slug: "far", url: "https://mcp.invalid/mcp" });
  const update = await admin.fetch("PATCH", `${path}/${id}`, { url: "http://127.0.0.1:9/mcp" });
  expect(update.status).toBe(400);
  expect(await admin.get(`${path}/${id}`)).toMatchObject({ url: "https://mcp.invalid/mcp" });
});
