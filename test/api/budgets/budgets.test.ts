// Budgets over the public API: who sets and sees them, what is charged, who is notified, and what gateway callers get when they are used
// up.
import { expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import type { Budget } from "#schema/ai/budget.ts";
import type { Client } from "#src/client.ts";
import { newPerson } from "#test/api/users/people.ts";
import { testInside } from "#test/support/inside.ts";
import { createGatewayToken, openGatewayWorld } from "#test/support/models/gateway-world.ts";
import { addModel } from "#test/support/models/model-world.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

const BUDGETS = "/api/v2/ai/budgets";
/** An output token costs 10 micros. */
const PRICE = { model_config: { cost: { input: 1_000_000, output: 10_000_000 } } };

type GatewayWorld = Awaited<ReturnType<typeof openGatewayWorld>>;

const openWorld = async () => {
  const world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  return world;
};

const setBudget = (client: Client, more: Partial<Budget>): Promise<Budget> =>
  client.put<Budget>(BUDGETS, Object.assign({ scope: "everyone", period: "month", unit: "usd", amount: 1_000 }, more));
const listBudgets = (client: Client): Promise<Budget[]> => client.get<Budget[]>(BUDGETS);

/** Makes a call with this many output tokens and returns its status. */
const use = async ({ base, token, upstream }: GatewayWorld, completion_tokens: number, as = token): Promise<number> => {
  const pending = fetch(`${base}/openai/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${as}` },
    body: JSON.stringify({ model: "test-model", max_tokens: 10, messages: [{ role: "user", content: "hello" }] }),
  });
  const call = await Promise.race([upstream.next(), pending]);
  if ("answer" in call) {
    call.answer(200, { model: "test-model", choices: [], usage: { prompt_tokens: 0, completion_tokens } });
  }
  const response = await pending;
  // The ledger has the call before its response is complete.
  await response.text();
  return response.status;
};

test("[BU-1] [BU-7] charges calls to the budgets of everyone, the user and the organization, in money and in tokens, including budgets that are set later", async () => {
  await using world = await openWorld();
  const { owner } = world;
  const { id: user_id, organization_ids } = await owner.get<{ id: string; organization_ids: string[] }>(
    "/api/v2/users/me",
  );
  const organization_id = organization_ids[0] ?? "";
  expect(await use(world, 30)).toBe(200);
  await setBudget(owner, { amount: 1_000 });
  await setBudget(owner, { scope: "user", scope_id: user_id, unit: "tokens", amount: 500, period: "day" });
  await setBudget(owner, { scope: "organization", scope_id: organization_id, amount: 5_000, period: "week" });
  expect(await use(world, 20)).toBe(200);
  const found = await listBudgets(owner);
  expect(found.map((one) => `${one.scope} ${one.unit} ${one.spent} ${one.reserved}`)).toEqual([
    "everyone usd 500 0",
    "user tokens 50 0",
    "organization usd 500 0",
  ]);
  expect(await use(world, 50)).toBe(200);
  expect(await use(world, 1)).toBe(429);
  await owner.delete(`${BUDGETS}/${found[0]?.id}`);
  expect(await use(world, 1)).toBe(200);
});

test("[BU-9] calls with a user's token are charged only to their home organization, even after others add them to another organization and its groups", async () => {
  await using world = await openWorld();
  const { owner } = world;
  const { id: scope_id } = await owner.post<{ id: string }>("/api/v2/organizations", { name: "crew" });
  const group = await owner.post<{ id: string }>("/api/v2/organizations/crew/groups", { name: "all" });
  const mal = await newPerson(owner, "mal");
  const token = await createGatewayToken(mal.client);
  await setBudget(owner, { scope: "organization", scope_id, amount: 0, unit: "tokens" });
  await setBudget(owner, { scope: "group", scope_id: group.id, amount: 0, unit: "tokens" });
  await owner.post("/api/v2/organizations/crew/members/mal");
  await owner.patch(`/api/v2/groups/${group.id}`, { add_users: [mal.user.id] });
  expect(await use(world, 20, token)).toBe(200);
  await owner.delete("/api/v2/organizations/default/members/mal");
  expect(await use(world, 20, token)).toBe(429);
  expect((await listBudgets(owner)).map(({ spent }) => spent)).toEqual([0, 0]);
  await owner.post("/api/v2/organizations/default/members/mal");
  expect((await mal.client.fetch("DELETE", "/api/v2/organizations/crew/members/me")).status).toBe(204);
  expect(await use(world, 20, token)).toBe(200);
});

test("[BU-4] each SDK raises its own error for a used-up budget, with the amount, the reset time and who can raise it; a raise lasts for the period", async () => {
  await using world = await openWorld();
  const { base, token, owner } = world;
  const { id } = await setBudget(owner, { amount: 0 });
  const words = "The monthly budget of everyone is used up: $0.00. It resets at ";
  await addModel(world, "anthropic");
  await addModel(world, "google");
  const once = { maxRetries: 0 } as const;
  const messages = [{ role: "user" as const, content: "hello" }];
  const catchError = async (requested: Promise<unknown>) =>
    (await requested.catch((error) => error)) as Error & { status: number };
  const rejections = [
    catchError(
      new OpenAI({ baseURL: `${base}/openai/v1`, apiKey: token, ...once }).chat.completions.create({
        model: "test-model",
        messages,
      }),
    ),
    catchError(
      new Anthropic({ baseURL: `${base}/anthropic`, authToken: token, apiKey: null, ...once }).messages.create({
        model: "test-model",
        max_tokens: 5,
        messages,
      }),
    ),
    catchError(
      new GoogleGenAI({
        apiKey: token,
        httpOptions: { baseUrl: `${base}/google`, retryOptions: { attempts: 1 } },
      }).models.generateContent({ model: "test-model", contents: "hello" }),
    ),
  ];
  for (const error of await Promise.all(rejections)) {
    expect<number>(error.status).toBe(429);
    expect(error.message).toContain(words);
    expect(error.message).toContain("admin can raise it.");
  }
  expect(world.upstream.connections).toBe(0);
  await owner.post(`${BUDGETS}/${id}/raise`, { amount: 1_000 });
  expect(await use(world, 10)).toBe(200);
  expect(await listBudgets(owner)).toMatchObject([{ amount: 0, extra: 1_000, spent: 100 }]);
});

test("[BU-5] while open calls may use up the budget, another call is asked to retry later", async () => {
  await using world = await openWorld();
  await setBudget(world.owner, { amount: 100 });
  const callModel = () =>
    fetch(`${world.base}/openai/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${world.token}` },
      body: JSON.stringify({ model: "test-model", max_tokens: 50, messages: [] }),
    });
  const first = callModel();
  const call = await world.upstream.next();
  const second = await callModel();
  expect([second.status, second.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(await second.text()).toContain("The rest of the monthly budget of everyone is reserved");
  call.answer(200, { model: "test-model", choices: [], usage: { prompt_tokens: 0, completion_tokens: 1 } });
  expect(await (await first).json()).toMatchObject({ model: "test-model" });
  expect(await use(world, 1)).toBe(200);
});

type Inbox = { readonly notifications: readonly { readonly title: string; readonly content: string }[] };

test("[BU-3] notifies the user and the people who can raise the budget when 80% and all of it are used, once per period", async () => {
  await using world = await openWorld();
  const { owner } = world;
  const mia = await newPerson(owner, "mia");
  const token = await createGatewayToken(mia.client);
  await setBudget(owner, { scope: "user", scope_id: mia.user.id, amount: 1_000 });
  const titles = async (client: Client) =>
    (await client.get<Inbox>("/api/v2/notifications/inbox")).notifications
      .map(({ title }) => title)
      .filter((title) => title.includes("budget"));
  expect(await use(world, 79, token)).toBe(200);
  expect(await titles(mia.client)).toEqual([]);
  expect(await use(world, 5, token)).toBe(200);
  const warning = 'The monthly budget of the user "mia" is nearly used up';
  await until(async () => (await titles(mia.client)).length > 0);
  expect(await titles(owner)).toEqual([warning]);
  expect(await use(world, 30, token)).toBe(200);
  for (let time = 0; time < 3; time++) expect(await use(world, 1, token)).toBe(429);
  expect(await titles(mia.client)).toEqual([warning]);
  expect(await titles(owner)).toEqual(['The monthly budget of the user "mia" is used up', warning]);
  // Calls of other users are not limited.
  expect(await use(world, 1)).toBe(200);
});

test("[BU-6] owners set every budget, administrators of an organization its own, everyone sees what limits them, and changes are audited", async () => {
  await using world = await openWorld();
  const { owner } = world;
  const { organization_ids } = await owner.get<{ organization_ids: string[] }>("/api/v2/users/me");
  const scope_id = organization_ids[0] ?? "";
  const mia = await newPerson(owner, "mia");
  const lead = await newPerson(owner, "lead");
  await owner.put(`/api/v2/organizations/${scope_id}/members/${lead.user.id}/roles`, { roles: ["organization-admin"] });
  const globalBudget = await setBudget(owner, {});
  const organizationBudget = await setBudget(lead.client, { scope: "organization", scope_id });
  const leadBudget = await setBudget(owner, { scope: "user", scope_id: lead.user.id });
  const ids = async (client: Client) => (await listBudgets(client)).map(({ id }) => id);
  expect(await ids(mia.client)).toEqual([globalBudget.id, organizationBudget.id]);
  expect(await ids(lead.client)).toEqual([globalBudget.id, organizationBudget.id, leadBudget.id]);
  const status = async (client: Client, method: string, path: string, body?: unknown) =>
    (await client.fetch(method, `${BUDGETS}${path}`, body)).status;
  const budget = { scope: "organization", scope_id, period: "month", unit: "usd", amount: 9 };
  expect(await status(mia.client, "PUT", "", budget)).toBe(403);
  expect(await status(lead.client, "PUT", "", { scope: "everyone", period: "day", unit: "usd", amount: 9 })).toBe(403);
  expect(await status(mia.client, "POST", `/${globalBudget.id}/raise`, { amount: 5 })).toBe(403);
  expect(await status(mia.client, "DELETE", `/${leadBudget.id}`)).toBe(404);
  expect(await status(mia.client, "POST", `/person:${mia.user.id}/raise`, { amount: 5 })).toBe(403);
  expect(await status(owner, "POST", `/person:${mia.user.id}/raise`, { amount: 5 })).toBe(404);
  for (const bad of [
    { ...budget, scope_id: undefined },
    { ...budget, scope: "everyone" },
    { ...budget, scope: "template" },
    { ...budget, amount: -1 },
    { ...budget, amount: 1.5 },
    { ...budget, period: "year" },
    { ...budget, unit: "eur" },
  ])
    expect([bad, await status(owner, "PUT", "", bad)]).toEqual([bad, 400]);
  expect(await status(lead.client, "PUT", "", { ...budget, amount: 7 })).toBe(200);
  expect(await status(lead.client, "POST", `/${organizationBudget.id}/raise`, { amount: 5 })).toBe(204);
  expect(await status(lead.client, "DELETE", `/${organizationBudget.id}`)).toBe(204);
  type Entry = {
    readonly resource_target: string;
    readonly diff: Record<string, unknown>;
    readonly status_code: number;
  };
  const { audit_logs } = await owner.get<{ audit_logs: Entry[] }>("/api/v2/audit?limit=50");
  const changes = audit_logs.filter(
    ({ resource_target, status_code }) => resource_target === "budget" && status_code < 400,
  );
  expect(changes.map(({ diff }) => Object.keys(diff).sort().join())).toEqual([
    "amount,period,scope,scope_id,unit",
    "extra",
    "amount",
    "amount,period,scope,scope_id,unit",
    "amount,period,scope,scope_id,unit",
    "amount,period,scope,unit",
  ]);
});

testInside("[BU-5] a reservation that is not renewed is settled in full while the server runs", async () => {
  await using world = await openWorld();
  const ctx = getContext(world.server);
  await setBudget(world.owner, { amount: 1_000 });
  const { id: user_id } = await world.owner.get<{ id: string }>("/api/v2/users/me");
  const call = {
    user_id,
    workspace_id: "",
    key_id: "",
    provider_id: "",
    model_config_id: "",
    asked_model: "",
    model: "",
    kind: "gateway",
    chat_id: "",
    root_chat_id: "",
    organization_id: "",
    template_id: "",
  } as const;
  const opened = await ctx.ledger.begin(call, () => ({ micros: 400, tokens: 40 }), { always: true });
  expect("reserved" in opened).toBe(true);
  // A call of another server that has crashed.
  const row = { ...call, id: "lost", reserved_micros: 300, reserved_tokens: 30, created_at: 0, alive_until: 1 };
  const { insertReservation } = await import("#db/chats/reservations.ts");
  await ctx.store.commit([insertReservation(row)]);
  expect(await listBudgets(world.owner)).toMatchObject([{ spent: 0, reserved: 700 }]);
  await ctx.ledger.settleLost({ all: false });
  expect(await listBudgets(world.owner)).toMatchObject([{ spent: 300, reserved: 400 }]);
  await ctx.ledger.settleLost({ all: false });
  expect(await listBudgets(world.owner)).toMatchObject([{ spent: 300, reserved: 400 }]);
});
