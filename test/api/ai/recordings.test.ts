// Recordings of gateway calls: off by default, encrypted, readable only by owners, audited, and deleted after the retention period.
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
const RECORDING_ON = { recording: { enabled: true, days: 7 } };

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
/** Makes a complete call and returns its entry in the ledger, which exists before the caller has the last byte. */
const completeCall = async (content?: string, token?: string) => {
  const pendingResponse = callModel(content, token);
  (await upstream.next()).sendRaw(delta(ANSWER)).sendRaw(delta(MODEL_KEY)).end();
  await (await pendingResponse).text();
  const [newest] = await listGatewayCalls(owner);
  if (!newest) throw new Error("the ledger is empty");
  return newest;
};
const toRecordingPath = (id: number): string => `/api/v2/ai/calls/${id}/recording`;
const getRecording = (id: number, client = owner): Promise<GatewayRecording> =>
  client.get<GatewayRecording>(toRecordingPath(id));
const fetchStatus = async (id: number | string, client = owner): Promise<number> =>
  (
    await fetch(new URL(toRecordingPath(id as number), server.url), {
      headers: { "Service-Session-Token": client.token ?? "" },
    })
  ).status;

test("[GW-15] records nothing unless an owner enables it, and stops after a settings change that omits recording", async () => {
  expect(await owner.get<GatewaySettings>(GATEWAY_SETTINGS)).toMatchObject({ recording: { enabled: false, days: 30 } });
  const unrecorded = await completeCall();
  expect([unrecorded.is_recorded, await fetchStatus(unrecorded.id)]).toEqual([false, 404]);
  await putGatewaySettings(owner, RECORDING_ON);
  expect((await completeCall()).is_recorded).toBe(true);
  await putGatewaySettings(owner);
  expect((await completeCall()).is_recorded).toBe(false);
  expect(await fetchStatus("none")).toBe(404);
});

test("[GW-15] a recording contains the request and response, is stored encrypted, and adds each read to the audit log", async () => {
  await putGatewaySettings(owner, RECORDING_ON);
  const { id } = await completeCall();
  const recording = await getRecording(id);
  expect(recording).toMatchObject({ call_id: id, username: "admin" });
  expect(JSON.parse(recording.prompt)).toMatchObject({ model: "test-model", messages: [{ content: PROMPT }] });
  expect(recording.answer).toContain(ANSWER);
  // The provider echoes its API key, which must not be recorded.
  expect(JSON.stringify(recording)).not.toContain(MODEL_KEY);
  expect(recording.prompt_bytes).toBe(Buffer.byteLength(recording.prompt));
  for (const text of await readStoredTexts(server.directory)) {
    for (const secret of [PROMPT, ANSWER, Buffer.from(PROMPT).toString("base64")]) expect(text).not.toContain(secret);
  }
  await getRecording(id);
  const { audit_logs } = await owner.get<{ audit_logs: AuditLog[] }>("/api/v2/audit?limit=10&q=resource_type:ai_call");
  expect(audit_logs).toHaveLength(2);
  expect(audit_logs[0]).toMatchObject({
    action: "open",
    resource_target: `${id} of admin`,
    description: "{user} opened recording of model call {target}",
    user: { username: "admin" },
  });
});

test("[GW-15] only owners read recordings; users see which calls are recorded; recordings are deleted with their user", async () => {
  const mia = { email: "m@example.com", username: "mia", password: "correct-horse-battery" };
  const { id: user_id } = await owner.post<{ id: string }>("/api/v2/users", {
    ...mia,
    organization_ids: [world.organization_id],
  });
  const client = await new Client(server.url).signIn(mia.email, mia.password);
  const call = await completeCall(PROMPT, await createGatewayToken(client));
  expect(await listGatewayCalls(client)).toMatchObject([{ id: call.id, is_recorded: true }]);
  expect(await fetchStatus(call.id, client)).toBe(403);
  expect(await fetchStatus(call.id)).toBe(200);
  // A call that ends after its user was deleted leaves no recording.
  const openRequest = callModel(PROMPT, await createGatewayToken(client));
  const openCall = await upstream.next();
  openCall.sendRaw(delta(ANSWER));
  await (await openRequest).body?.getReader().read();
  await owner.delete(`/api/v2/users/${user_id}`);
  openCall.end();
  const endedCall = await until(async () => (await listGatewayCalls(owner)).find(({ id }) => id > call.id));
  expect([endedCall?.is_recorded, await fetchStatus(call.id)]).toEqual([false, 404]);
  await using stored = await openStoredData(server.directory);
  expect(await stored.rows(`select count(*) from model_recordings where user_id = '${user_id}'`)).toEqual([[0]]);
});

test("[GW-15] limits the recorded size of a call, and records calls that fail", async () => {
  const longCall = await completeCall(`first ${"x".repeat(2 * MAX_RECORDED_BYTES)} last`);
  const { prompt, prompt_bytes } = await getRecording(longCall.id);
  expect(prompt_bytes).toBeGreaterThan(2 * MAX_RECORDED_BYTES);
  expect(Buffer.byteLength(prompt)).toBeLessThan(MAX_RECORDED_BYTES + 100);
  expect(prompt).toMatch(/first x{1000,}\n\[\d+ bytes are not recorded\]\nx{1000,} last/);
  const pendingResponse = callModel();
  const flood = await upstream.next();
  for (let i = 0; i < 3; i++) flood.sendRaw(delta("y".repeat(MAX_RECORDED_BYTES / 2)));
  flood.end();
  const response = await (await pendingResponse).text();
  const [floodedCall] = await listGatewayCalls(owner);
  expect(await getRecording(floodedCall?.id ?? 0)).toMatchObject({
    answer: response.slice(0, MAX_RECORDED_BYTES),
    answer_bytes: response.length,
  });
  const refusedResponse = callModel();
  (await upstream.next()).answer(400, { error: { message: `bad ${MODEL_KEY}` } });
  expect((await refusedResponse).status).toBe(400);
  const [failedCall] = await listGatewayCalls(owner);
  const { answer } = await getRecording(failedCall?.id ?? 0);
  expect(answer).toContain("bad ");
  expect(answer).not.toContain(MODEL_KEY);
});

test("[GW-17] deletes the oldest recordings when their total size exceeds the limit", async () => {
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
    const { id } = await completeCall(randomBytes(200_000).toString("hex"));
    ids.push(id);
  }
  await until(async () => (await fetchStatus(ids[1] ?? 0)) === 404);
  expect(await Promise.all(ids.map((id) => fetchStatus(id)))).toEqual([404, 404, 200, 200]);
  expect((await listGatewayCalls(owner)).filter(({ id }) => ids.includes(id))).toHaveLength(4);
  await using stored = await openStoredData(server.directory);
  const [[bytes]] = (await stored.rows("select sum(length(sealed_texts)) from model_recordings")) as [[number]];
  expect(bytes).toBeLessThanOrEqual(1024 ** 2);
});

test("[GW-15] deletes recordings after the retention period, even while recording is off, and keeps the ledger", async () => {
  const { id } = await completeCall();
  await putGatewaySettings(owner, { recording: { enabled: false, days: 2 } });
  const signInAfterDays = async (days: number): Promise<Client> => {
    clock.leap(days * DAY_MS);
    return await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  };
  expect(await fetchStatus(id, await signInAfterDays(1))).toBe(200);
  const laterClient = await signInAfterDays(1.1);
  const remaining = await until(async () => {
    const calls = await listGatewayCalls(laterClient);
    return calls.every(({ is_recorded }) => !is_recorded) ? calls : undefined;
  });
  expect(remaining?.some((call) => call.id === id)).toBe(true);
  expect(await fetchStatus(id, laterClient)).toBe(404);
});
