// Web push: encryption, subscriptions, and delivery to push services.
import { expect, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import { toSealContext } from "#actors/notifications/push.ts";
import { sha256, uuid } from "#base/ids.ts";
import { insertSubscription, listSubscriptions } from "#db/notifications/deliveries.ts";
import { Client } from "#src/client.ts";
import { encryptPush, formatVapidHeader, isPushKeys, makeVapidKeys } from "#src/notify/push.ts";
import { createChat } from "#test/support/chats.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { PushService } from "#test/support/push-service.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { fetchStatus } from "../users/people.ts";

// The example of RFC 8291, appendix A.
const EXAMPLE = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};
const SALT = Buffer.from("DGv6ra1nlYgDCS1FRnbzlw", "base64url");
const PRIVATE_KEY = Buffer.from("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", "base64url");
const SEALED =
  "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

test("[NO-8] encrypts a message like the example in the standard", () => {
  const sealed = encryptPush("When I grow up, I want to be a watermelon", EXAMPLE, {
    salt: SALT,
    private_key: PRIVATE_KEY,
  });
  expect(Buffer.from(sealed).toString("base64url")).toBe(SEALED);
  expect(encryptPush("x", EXAMPLE)).not.toEqual(encryptPush("x", EXAMPLE));
});

test("[NO-8] rejects invalid keys", () => {
  expect(isPushKeys(EXAMPLE)).toBe(true);
  expect(isPushKeys({ ...EXAMPLE, auth: "AAAA" })).toBe(false);
  // A point that is not on the curve.
  const invalidPoint = Buffer.from(EXAMPLE.p256dh, "base64url");
  invalidPoint[64] = (invalidPoint[64] ?? 0) ^ 1;
  expect(isPushKeys({ ...EXAMPLE, p256dh: invalidPoint.toString("base64url") })).toBe(false);
});

test("[NO-8] signs requests for the origin of the push service", () => {
  const keys = makeVapidKeys();
  const header = formatVapidHeader(
    new URL("https://push.example.com/abc"),
    keys,
    "https://slipway.example.com",
    1_000_000,
  );
  const [, token = "", key] = /^vapid t=(\S+), k=(\S+)$/.exec(header) ?? [];
  expect(key).toBe(keys.public_key);
  const [head = "", claims = "", signature = ""] = token.split(".");
  expect(JSON.parse(Buffer.from(claims, "base64url").toString())).toEqual({
    aud: "https://push.example.com",
    exp: 1_000 + 43_200,
    sub: "https://slipway.example.com",
  });
  const point = Buffer.from(keys.public_key, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString("base64url"));
  const jwk = createPublicKey({ key: { kty: "EC", crv: "P-256", x, y } as never, format: "jwk" });
  const bytes = Buffer.from(signature, "base64url");
  expect(verify("sha256", Buffer.from(`${head}.${claims}`), { key: jwk, dsaEncoding: "ieee-p1363" }, bytes)).toBe(true);
});

test("[NO-8] accepts at most ten public https addresses, only from sessions", async () => {
  // A member's browser must not make the server call addresses that are allowed only for its settings.
  await using server = await startTestServer({ env: { SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8,10.0.0.0/8" } });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const keys = { auth_key: EXAMPLE.auth, p256dh_key: EXAMPLE.p256dh };
  const subscribe = (endpoint: string, overrides = {}) =>
    fetchStatus(admin, "POST", "/users/me/webpush/subscription", { endpoint, ...keys, ...overrides });
  for (const endpoint of [
    ...["http://push.example.com/x", "https://127.0.0.1/x", "https://[::1]/x", "https://169.254.169.254/latest"],
    ...["https://10.0.0.1:8443/x", "https://user:pass@push.invalid/x", "ftp://push.invalid/x", "https://localhost/x"],
  ]) {
    expect([endpoint, await subscribe(endpoint)]).toEqual([endpoint, 400]);
  }
  expect(await subscribe("https://push.invalid/x", { p256dh_key: "AAAA" })).toBe(400);
  for (let i = 0; i < 10; i++) expect(await subscribe(`https://push.invalid/${i}`)).toBe(204);
  expect(await subscribe("https://push.invalid/more")).toBe(409);
  expect(await subscribe("https://push.invalid/3")).toBe(204);
  const { id: user_id } = await admin.get<{ id: string }>("/api/v2/users/me");
  const listIds = async () =>
    new Set((await getContext(server).store.all(listSubscriptions({ user_id, now: Date.now() }))).map(({ id }) => id));
  // Pages register their browser at each load. Without a change, the server writes nothing.
  const before = await listIds();
  expect(await subscribe("https://push.invalid/3")).toBe(204);
  expect(await listIds()).toEqual(before);
  expect(await subscribe("https://push.invalid/3", { auth_key: "A".repeat(22) })).toBe(204);
  expect((await listIds()).difference(before).size).toBe(1);
  const removedSubscription = { endpoint: "https://push.invalid/3" };
  expect(await fetchStatus(admin, "DELETE", "/users/me/webpush/subscription", removedSubscription)).toBe(204);
  expect(await fetchStatus(admin, "DELETE", "/users/me/webpush/subscription", removedSubscription)).toBe(404);
  const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  const tokenSubscription = { endpoint: "https://push.invalid/token", ...keys };
  expect(
    await fetchStatus(new Client(server.url, key), "POST", "/users/me/webpush/subscription", tokenSubscription),
  ).toBe(403);
  const { webpush_public_key } = await admin.get<{ webpush_public_key: string }>("/api/v2/buildinfo");
  expect(Buffer.from(webpush_public_key, "base64url")[0]).toBe(4);
  expect((await admin.get<{ webpush_public_key: string }>("/api/v2/buildinfo")).webpush_public_key).toBe(
    webpush_public_key,
  );
});

describeInProcess("delivery to browsers", () => {
  test("[NO-8] delivers a push, and removes a browser that its service forgot or whose session has ended", async () => {
    const pushes: { headers: Headers; bytes: number }[] = [];
    let status = 201;
    using service = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        pushes.push({ headers: request.headers, bytes: (await request.arrayBuffer()).byteLength });
        return new Response(null, { status });
      },
    });
    await using server = await startTestServer({ env: { SLIPWAY_WEBPUSH_PRIVATE_NETWORKS: "127.0.0.0/8" } });
    const { store, encryption } = getContext(server);
    const ada = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const { id: user_id } = await ada.get<{ id: string }>("/api/v2/users/me");
    /** Stores the subscription of a browser that is signed in with this session. */
    const subscribe = async ({ token }: Client): Promise<void> => {
      const [id, endpoint] = [uuid(), `http://127.0.0.1:${service.port}/push`];
      const sealed = encryption.seal(JSON.stringify({ endpoint, ...EXAMPLE }), toSealContext(id));
      const key_id = token?.split("-")[0];
      await store.commit([
        insertSubscription({ id, user_id, key_id, endpoint_hash: sha256(endpoint), sealed, created_at: 1 }),
      ]);
    };
    const listStored = () => store.all(listSubscriptions({ user_id, now: Date.now() }));
    await subscribe(ada);
    await ada.post("/api/v2/users/me/webpush/test");
    const first = await until(() => pushes[0]);
    expect(first.headers.get("authorization")).toStartWith("vapid t=");
    expect(first.headers.get("content-encoding")).toBe("aes128gcm");
    expect(first.bytes).toBeGreaterThan(100);
    status = 410;
    await ada.post("/api/v2/notifications/test");
    await until(async () => (await listStored()).length === 0);
    expect(pushes).toHaveLength(2);
    // A subscription ends with its session in all of these ways.
    for (const endSession of [
      (session: Client) => session.post("/api/v2/users/logout"),
      () => ada.delete("/api/v2/users/me/sessions"),
      () => ada.put(`/api/v2/users/${user_id}/password`, { old_password: ADMIN.password, password: ADMIN.password }),
    ]) {
      const session = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
      await subscribe(session);
      expect(await listStored()).toHaveLength(1);
      await endSession(session);
      expect(await listStored()).toEqual([]);
    }
  });

  test("[NO-13] allows only denying writes and commands that the notification cannot show completely", async () => {
    using service = PushService.startPlain();
    const models = new ScriptedModels();
    await using server = await startTestServer({ models, env: { SLIPWAY_WEBPUSH_PRIVATE_NETWORKS: "127.0.0.0/8" } });
    const { store, encryption } = getContext(server);
    const { owner_id: user_id, owner_token, organization_id, workspace_id } = await seedAgent(server);
    const owner = new Client(server.url, owner_token);
    const id = uuid();
    const [key_id, endpoint_hash] = [owner_token.split("-")[0], sha256(service.subscription.endpoint)];
    const sealed = encryption.seal(JSON.stringify(service.subscription), toSealContext(id));
    await store.commit([insertSubscription({ id, user_id, key_id, endpoint_hash, sealed, created_at: 1 })]);
    /** Lets a model call a tool in a chat that asks for approval, and returns the push that the browser gets. */
    type Pushed = { readonly body: string; readonly approval: { readonly can_allow: boolean } };
    const pushCommand = (command: string): Promise<Pushed> => pushToolCall("execute", { command });
    const pushToolCall = async (tool: string, args: object): Promise<Pushed> => {
      const deliveredCount = service.delivered.length;
      await createChat({ owner, organization_id }, "go", { workspace_id, permission_mode: "ask" });
      (await models.next()).callTool("one", tool, args).finish("tool_calls");
      const { text } = await until(() => service.delivered[deliveredCount]);
      return JSON.parse(text);
    };
    for (const command of ["ls", "for i in 1 2; do\n    ls $i\ndone"])
      expect(await pushCommand(command)).toMatchObject({ body: `Run: ${command}`, approval: { can_allow: true } });
    const blanks = [" ", "\t", "\u00a0", "\u2003", "\u3000", "\u2800", "\u3164", "\u00ad", "        \u00ad"];
    const padded = blanks.map((blank) => `ls${blank.repeat(60).slice(0, 60)}; rm -rf ~`);
    const filled = ["''", "./", "xx"].map((filler) => `ls ${filler.repeat(60)};rm -rf ~`);
    for (const command of [...padded, ...filled])
      expect([command, (await pushCommand(command)).approval.can_allow]).toEqual([command, false]);
    const write = await pushToolCall("write_file", { path: "x.sh", content: "rm -rf ~" });
    expect(write).toMatchObject({ body: "Write x.sh", approval: { can_allow: false } });
  });
});
