// Recorded prompts and answers of gateway calls: off by default, encrypted, readable by owners with an audit log entry, deleted in time.
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import type { GatewayRecording, GatewaySettings } from "#schema/ai/gateway.ts";
import type { AuditLog } from "#schema/audit.ts";
import { Client } from "#src/client.ts";
import { MAX_RECORDED_BYTES } from "#src/llm/gateway/recording.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import {
  createGatewayToken,
  GATEWAY_SETTINGS,
  listGatewayCalls,
  openGatewayWorld,
  putGatewaySettings,
} from "#test/support/models/gateway-world.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { ADMIN } from "#test/support/server.ts";
import { openStoredData, readStoredTexts } from "#test/support/stored.ts";
import { until } from "#test/support/until.ts";

const DAY_MS = 86_400_000;
const PROMPT = "how do we name the secret project";
const ANSWER = "Codename Marmalade";
const ON = { recording: { enabled: true, days: 7 } };

const clock = new ManualClock(Date.now());
const world = await forFile(openGatewayWorld({ clock }));
const { owner, upstream, server, base } = world;
await addModel(world, "anthropic");

const delta = (text: string): string =>
  `data: ${JSON.stringify({ type: "content_block_delta", delta: { type: "text_delta", text } })}\n\n`;

const callModel = (content = PROMPT, token = world.token): Promise<Response> =>
  fetch(`${base}/anthropic/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": token },
    body: JSON.stringify({ model: "test-model", stream: true, max_tokens: 9, messages: [{ role: "user", content }] }),
  });
/** Makes one complete call; the server registers its end before the caller does. */
const callOnce = async (content?: string, token?: string) => {
  const requested = callModel(content, token);
  (await upstream.next()).sendRaw(delta(ANSWER)).sendRaw(delta(MODEL_KEY)).end();
  await (await requested).text();
  const [newest] = await listGatewayCalls(owner);
  if (!newest) throw new Error("the ledger is empty");
  return newest;
};
const toRecordingPath = (id: number): string => `/api/v2/ai/calls/${id}/recording`;
const read = (id: number, client = owner): Promise<GatewayRecording> =>
  client.get<GatewayRecording>(toRecordingPath(id));
const fetchStatus = async (id: number | string, client = owner): Promise<number> =>
  (
    await fetch(new URL(toRecordingPath(id as number), server.url), {
      headers: { "Service-Session-Token": client.token ?? "" },
    })
  ).status;

test("[GW-15] nothing is recorded unless an owner has enabled it, and a settings change that omits it disables it", async () => {
  expect(await owner.get<GatewaySettings>(GATEWAY_SETTINGS)).toMatchObject({ recording: { enabled: false, days: 30 } });
  const off = await callOnce();
  expect([off.is_recorded, await fetchStatus(off.id)]).toEqual([false, 404]);
  await putGatewaySettings(owner, ON);
  expect((await callOnce()).is_recorded).toBe(true);
  await putGatewaySettings(owner);
  expect((await callOnce()).is_recorded).toBe(false);
  expect(await fetchStatus("none")).toBe(404);
});

test("[GW-15] a recording has the request and response, is stored encrypted, and each read is in the audit log", async () => {
  await putGatewaySettings(owner, ON);
  const { id } = await callOnce();
  const recording = await read(id);
  expect(recording).toMatchObject({ call_id: id, username: "admin" });
  expect(JSON.parse(recording.prompt)).toMatchObject({ model: "test-model", messages: [{ content: PROMPT }] });
  expect(recording.answer).toContain(ANSWER);
  // The API key that a provider echoes appears in neither.
  expect(JSON.stringify(recording)).not.toContain(MODEL_KEY);
  expect(recording.prompt_bytes).toBe(Buffer.byteLength(recording.prompt));
  for (const text of await readStoredTexts(server.directory)) {
    for (const secret of [PROMPT, ANSWER, Buffer.from(PROMPT).toString("base64")]) expect(text).not.toContain(secret);
  }
  await read(id);
  const { audit_logs } = await owner.get<{ audit_logs: AuditLog[] }>("/api/v2/audit?limit=10&q=resource_type:ai_call");
  expect(audit_logs).toHaveLength(2);
  expect(audit_logs[0]).toMatchObject({
    action: "open",
    resource_target: `${id} of admin`,
    description: "{user} opened recording of model call {target}",
    user: { username: "admin" },
  });
});

test("[GW-15] only owners read recordings, while their user sees that one exists; they are deleted with the user", async () => {
  const mia = { email: "m@example.com", username: "mia", password: "correct-horse-battery" };
  const { id: user_id } = await owner.post<{ id: string }>("/api/v2/users", {
    ...mia,
    organization_ids: [world.organization_id],
  });
  const client = await new Client(server.url).signIn(mia.email, mia.password);
  const call = await callOnce(PROMPT, await createGatewayToken(client));
  expect(await listGatewayCalls(client)).toMatchObject([{ id: call.id, is_recorded: true }]);
  expect(await fetchStatus(call.id, client)).toBe(403);
  expect(await fetchStatus(call.id)).toBe(200);
  // A call that ends after its user was deleted leaves no recording.
  const lateCall = callModel(PROMPT, await createGatewayToken(client));
  const answering = await upstream.next();
  answering.sendRaw(delta(ANSWER));
  await (await lateCall).body?.getReader().read();
  await owner.delete(`/api/v2/users/${user_id}`);
  answering.end();
  const ended = await until(async () => (await listGatewayCalls(owner)).find(({ id }) => id > call.id));
  expect([ended?.is_recorded, await fetchStatus(call.id)]).toEqual([false, 404]);
  await using stored = await openStoredData(server.directory);
  expect(await stored.rows(`select count(*) from model_recordings where user_id = '${user_id}'`)).toEqual([[0]]);
});

test("[GW-15] the recorded size of a call is bounded; calls that fail or break off are recorded too", async () => {
  const longCall = await callOnce(`first ${"x".repeat(2 * MAX_RECORDED_BYTES)} last`);
  const { prompt, prompt_bytes } = await read(longCall.id);
  expect(prompt_bytes).toBeGreaterThan(2 * MAX_RECORDED_BYTES);
  expect(Buffer.byteLength(prompt)).toBeLessThan(MAX_RECORDED_BYTES + 100);
  expect(prompt).toMatch(/first x{1000,}\n\[\d+ bytes are not recorded\]\nx{1000,} last/);
  const requested = callModel();
  const flood = await upstream.next();
  for (let i = 0; i < 3; i++) flood.sendRaw(delta("y".repeat(MAX_RECORDED_BYTES / 2)));
  flood.end();
  const answered = await (await requested).text();
  const [flooded] = await listGatewayCalls(owner);
  expect(await read(flooded?.id ?? 0)).toMatchObject({
    answer: answered.slice(0, MAX_RECORDED_BYTES),
    answer_bytes: answered.length,
  });
  const refused = callModel();
  (await upstream.next()).answer(400, { error: { message: `bad ${MODEL_KEY}` } });
  expect((await refused).status).toBe(400);
  const [failed] = await listGatewayCalls(owner);
  const { answer } = await read(failed?.id ?? 0);
  expect(answer).toContain("bad ");
  expect(answer).not.toContain(MODEL_KEY);
});

test("[GW-17] the oldest recordings are deleted when their total size exceeds the limit", async () => {
  expect(await owner.get<GatewaySettings>(GATEWAY_SETTINGS)).toMatchObject({ recording: { max_mib: 1_024 } });
  for (const max_mib of [0, 1.5, 102_401]) {
    await expect(putGatewaySettings(owner, { recording: { enabled: true, days: 7, max_mib } })).rejects.toMatchObject({
      status: 400,
    });
  }
  await putGatewaySettings(owner, { recording: { enabled: true, days: 7, max_mib: 1 } });
  // Two of these are below one MiB, three are not.
  const ids: number[] = [];
  for (let call = 0; call < 4; call++) {
    clock.advance(1_000);
    const { id } = await callOnce(randomBytes(200_000).toString("hex"));
    ids.push(id);
  }
  await until(async () => (await fetchStatus(ids[1] ?? 0)) === 404);
  expect(await Promise.all(ids.map((id) => fetchStatus(id)))).toEqual([404, 404, 200, 200]);
  expect((await listGatewayCalls(owner)).filter(({ id }) => ids.includes(id))).toHaveLength(4);
  await using stored = await openStoredData(server.directory);
  const [[bytes]] = (await stored.rows("select sum(length(sealed_texts)) from model_recordings")) as [[number]];
  expect(bytes).toBeLessThanOrEqual(1024 ** 2);
});

test("[GW-15] recordings are deleted after their retention period, also after recording was disabled; the ledger is kept", async () => {
  const { id } = await callOnce();
  await putGatewaySettings(owner, { recording: { enabled: false, days: 2 } });
  const signInAfterDays = async (days: number): Promise<Client> => {
    clock.leap(days * DAY_MS);
    return await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  };
  expect(await fetchStatus(id, await signInAfterDays(1))).toBe(200);
  const later = await signInAfterDays(1.1);
  const remaining = await until(async () => {
    const calls = await listGatewayCalls(later);
    return calls.every((one) => !one.is_recorded) ? calls : undefined;
  });
  expect(remaining?.some((one) => one.id === id)).toBe(true);
  expect(await fetchStatus(id, later)).toBe(404);
});
