// Budgets over the public API: permissions, charges, notifications, and the errors of gateway callers when a budget is used up.
import { expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { insertReservation } from "#db/chats/reservations.ts";
import type { Budget } from "#schema/ai/budget.ts";
import type { Client } from "#src/client.ts";
import { newPerson } from "#test/api/users/people.ts";
import { testInProcess } from "#test/support/in-process.ts";
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

const setBudget = (client: Client, fields: Partial<Budget>): Promise<Budget> =>
  client.put<Budget>(
    BUDGETS,
    Object.assign({ scope: "everyone", period: "month", unit: "usd", amount: 1_000 }, fields),
  );
const listBudgets = (client: Client): Promise<Budget[]> => client.get<Budget[]>(BUDGETS);

/** Makes a call with this many output tokens and returns its status. */
const callModel = async (
  { base, token: ownerToken, upstream }: GatewayWorld,
  completion_tokens: number,
  token = ownerToken,
): Promise<number> => {
  const request = fetch(`${base}/openai/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ model: "test-model", max_tokens: 10, messages: [{ role: "user", content: "hello" }] }),
  });
  const call = await Promise.race([upstream.next(), request]);
  if ("answer" in call) {
    call.answer(200, { model: "test-model", choices: [], usage: { prompt_tokens: 0, completion_tokens } });
  }
  const response = await request;
  // The ledger contains the call before its response is complete.
  await response.text();
  return response.status;
};

test("[BU-1] [BU-7] charges calls to the budgets of everyone, the user and the organization, even to budgets that are set later", async () => {
  await using world = await openWorld();
  const { owner } = world;
  const { id: user_id, organization_ids } = await owner.get<{ id: string; organization_ids: string[] }>(
    "/api/v2/users/me",
  );
  const organization_id = organization_ids[0] ?? "";
  expect(await callModel(world, 30)).toBe(200);
  await setBudget(owner, { amount: 1_000 });
  await setBudget(owner, { scope: "user", scope_id: user_id, unit: "tokens", amount: 500, period: "day" });
  await setBudget(owner, { scope: "organization", scope_id: organization_id, amount: 5_000, period: "week" });
  expect(await callModel(world, 20)).toBe(200);
  const budgets = await listBudgets(owner);
  expect(budgets.map(({ scope, unit, spent, reserved }) => `${scope} ${unit} ${spent} ${reserved}`)).toEqual([
    "everyone usd 500 0",
    "user tokens 50 0",
    "organization usd 500 0",
  ]);
  expect(await callModel(world, 50)).toBe(200);
  expect(await callModel(world, 1)).toBe(429);
  await owner.delete(`${BUDGETS}/${budgets[0]?.id}`);
  expect(await callModel(world, 1)).toBe(200);
});

test("[BU-9] charges calls with a user's token only to the home organization, even if others add the user elsewhere", async () => {
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
  expect(await callModel(world, 20, token)).toBe(200);
  await owner.delete("/api/v2/organizations/default/members/mal");
  expect(await callModel(world, 20, token)).toBe(429);
  expect((await listBudgets(owner)).map(({ spent }) => spent)).toEqual([0, 0]);
  await owner.post("/api/v2/organizations/default/members/mal");
  expect((await mal.client.fetch("DELETE", "/api/v2/organizations/crew/members/me")).status).toBe(204);
  expect(await callModel(world, 20, token)).toBe(200);
});

test("[BU-4] each SDK raises its own error for a used-up budget, with its reset time; a raise lasts for the period", async () => {
  await using world = await openWorld();
  const { base, token, owner } = world;
  const { id } = await setBudget(owner, { amount: 0 });
  const message = "The monthly budget of everyone is used up: $0.00. It resets at ";
  await addModel(world, "anthropic");
  await addModel(world, "google");
  const messages = [{ role: "user" as const, content: "hello" }];
  const catchError = async (request: Promise<unknown>) =>
    (await request.catch((error) => error)) as Error & { status: number };
  const rejections = [
    catchError(
      new OpenAI({ baseURL: `${base}/openai/v1`, apiKey: token, maxRetries: 0 }).chat.completions.create({
        model: "test-model",
        messages,
      }),
    ),
    catchError(
      new Anthropic({ baseURL: `${base}/anthropic`, authToken: token, apiKey: null, maxRetries: 0 }).messages.create({
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
    expect(error.message).toContain(message);
    expect(error.message).toContain("admin can raise it.");
  }
  expect(world.upstream.connections).toBe(0);
  await owner.post(`${BUDGETS}/${id}/raise`, { amount: 1_000 });
  expect(await callModel(world, 10)).toBe(200);
  expect(await listBudgets(owner)).toMatchObject([{ amount: 0, extra: 1_000, spent: 100 }]);
});

test("[BU-5] tells a caller to retry later while open calls may use up the budget", async () => {
  await using world = await openWorld();
  await setBudget(world.owner, { amount: 100 });
  const startCall = () =>
    fetch(`${world.base}/openai/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${world.token}` },
      body: JSON.stringify({ model: "test-model", max_tokens: 50, messages: [] }),
    });
  const openCall = startCall();
  const call = await world.upstream.next();
  const refused = await startCall();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(await refused.text()).toContain("The rest of the monthly budget of everyone is reserved");
  call.answer(200, { model: "test-model", choices: [], usage: { prompt_tokens: 0, completion_tokens: 1 } });
  expect(await (await openCall).json()).toMatchObject({ model: "test-model" });
  expect(await callModel(world, 1)).toBe(200);
});

type Inbox = { readonly notifications: readonly { readonly title: string; readonly content: string }[] };

test("[BU-3] notifies the user and the people who can raise the budget once at 80% and once at 100%", async () => {
  await using world = await openWorld();
  const { owner } = world;
  const mia = await newPerson(owner, "mia");
  const token = await createGatewayToken(mia.client);
  await setBudget(owner, { scope: "user", scope_id: mia.user.id, amount: 1_000 });
  const listBudgetTitles = async (client: Client) =>
    (await client.get<Inbox>("/api/v2/notifications/inbox")).notifications
      .map(({ title }) => title)
      .filter((title) => title.includes("budget"));
  expect(await callModel(world, 79, token)).toBe(200);
  expect(await listBudgetTitles(mia.client)).toEqual([]);
  expect(await callModel(world, 5, token)).toBe(200);
  const warning = 'The monthly budget of the user "mia" is nearly used up';
  await until(async () => (await listBudgetTitles(mia.client)).length > 0);
  expect(await listBudgetTitles(owner)).toEqual([warning]);
  expect(await callModel(world, 30, token)).toBe(200);
  for (let attempt = 0; attempt < 3; attempt++) expect(await callModel(world, 1, token)).toBe(429);
  expect(await listBudgetTitles(mia.client)).toEqual([warning]);
  expect(await listBudgetTitles(owner)).toEqual(['The monthly budget of the user "mia" is used up', warning]);
  // Calls of other users are not limited.
  expect(await callModel(world, 1)).toBe(200);
});

test("[BU-6] owners set every budget, and administrators their organization's; users see their own limits; changes are audited", async () => {
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
  const listIds = async (client: Client) => (await listBudgets(client)).map(({ id }) => id);
  expect(await listIds(mia.client)).toEqual([globalBudget.id, organizationBudget.id]);
  expect(await listIds(lead.client)).toEqual([globalBudget.id, organizationBudget.id, leadBudget.id]);
  const fetchStatus = async (client: Client, method: string, path: string, body?: unknown) =>
    (await client.fetch(method, `${BUDGETS}${path}`, body)).status;
  const budget = { scope: "organization", scope_id, period: "month", unit: "usd", amount: 9 };
  expect(await fetchStatus(mia.client, "PUT", "", budget)).toBe(403);
  expect(await fetchStatus(lead.client, "PUT", "", { scope: "everyone", period: "day", unit: "usd", amount: 9 })).toBe(
    403,
  );
  expect(await fetchStatus(mia.client, "POST", `/${globalBudget.id}/raise`, { amount: 5 })).toBe(403);
  expect(await fetchStatus(mia.client, "DELETE", `/${leadBudget.id}`)).toBe(404);
  expect(await fetchStatus(mia.client, "POST", `/person:${mia.user.id}/raise`, { amount: 5 })).toBe(403);
  expect(await fetchStatus(owner, "POST", `/person:${mia.user.id}/raise`, { amount: 5 })).toBe(404);
  for (const invalid of [
    { ...budget, scope_id: undefined },
    { ...budget, scope: "everyone" },
    { ...budget, scope: "template" },
    { ...budget, amount: -1 },
    { ...budget, amount: 1.5 },
    { ...budget, period: "year" },
    { ...budget, unit: "eur" },
  ])
    expect([invalid, await fetchStatus(owner, "PUT", "", invalid)]).toEqual([invalid, 400]);
  expect(await fetchStatus(lead.client, "PUT", "", { ...budget, amount: 7 })).toBe(200);
  expect(await fetchStatus(lead.client, "POST", `/${organizationBudget.id}/raise`, { amount: 5 })).toBe(204);
  expect(await fetchStatus(lead.client, "DELETE", `/${organizationBudget.id}`)).toBe(204);
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

testInProcess("[BU-5] charges an unrenewed reservation in full while the server runs", async () => {
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
  const reservation = await ctx.ledger.begin(call, () => ({ micros: 400, tokens: 40 }), { always: true });
  expect("reserved" in reservation).toBe(true);
  // A call of another server that has crashed.
  const lostCall = { ...call, id: "lost", reserved_micros: 300, reserved_tokens: 30, created_at: 0, alive_until: 1 };
  await ctx.store.commit([insertReservation(lostCall)]);
  expect(await listBudgets(world.owner)).toMatchObject([{ spent: 0, reserved: 700 }]);
  await ctx.ledger.settleLost({ all: false });
  expect(await listBudgets(world.owner)).toMatchObject([{ spent: 300, reserved: 400 }]);
  await ctx.ledger.settleLost({ all: false });
  expect(await listBudgets(world.owner)).toMatchObject([{ spent: 300, reserved: 400 }]);
});
