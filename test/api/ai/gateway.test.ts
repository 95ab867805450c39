// The AI gateway from its callers' point of view: through the providers' own SDKs, and over plain HTTP for requests that no SDK sends.
import { describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import type { AiUsage } from "#schema/ai/gateway.ts";
import { Client } from "#src/client.ts";
import {
  chunk,
  createGatewayToken,
  delta,
  type GatewayWorld,
  listGatewayCalls,
  openai,
  openGatewayWorld,
  PRICE,
  putGatewaySettings,
  USAGE,
} from "#test/support/models/gateway-world.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";

const anthropic = ({ base, token }: Pick<GatewayWorld, "base" | "token">) =>
  new Anthropic({ baseURL: `${base}/anthropic`, authToken: token, apiKey: null, maxRetries: 0 });

type Endpoint = { readonly url: string; readonly token: string; readonly fetch: typeof fetch };

/** A stream by each API, as requested by its own SDK. Google's SDK accepts no fetch, so its bytes are not compared. */
const STREAMS: readonly {
  readonly api: string;
  readonly kind: "openai-compat" | "openai" | "anthropic" | "google";
  readonly base: string;
  readonly open: (endpoint: Endpoint) => PromiseLike<AsyncIterable<object>>;
}[] = [
  {
    api: "chat completions",
    kind: "openai-compat",
    base: "/openai/v1",
    open: ({ url: baseURL, token: apiKey, fetch }) =>
      new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 }).chat.completions.create({
        model: "test-model",
        stream: true,
        messages: [{ role: "user", content: "hello" }],
      }),
  },
  {
    api: "responses",
    kind: "openai",
    base: "/openai/v1",
    open: ({ url: baseURL, token: apiKey, fetch }) =>
      new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 }).responses.create({
        model: "test-model",
        stream: true,
        input: "hello",
      }),
  },
  {
    api: "messages",
    kind: "anthropic",
    base: "/anthropic",
    open: ({ url: baseURL, token: apiKey, fetch }) =>
      new Anthropic({ baseURL, apiKey, fetch, maxRetries: 0 }).messages.create({
        model: "test-model",
        max_tokens: 64,
        stream: true,
        messages: [{ role: "user", content: "hello" }],
      }),
  },
  {
    api: "generateContent",
    kind: "google",
    base: "/google",
    open: ({ url: baseUrl, token: apiKey }) =>
      new GoogleGenAI({ apiKey, httpOptions: { baseUrl } }).models.generateContentStream({
        model: "test-model",
        contents: "hello",
      }),
  },
];

describe("SDKs", () => {
  test("[GW-1] [GW-2] [GW-5] OpenAI's SDK streams chat completions, and the ledger records their usage", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai", PRICE);
    const pendingResponse = openai(world).chat.completions.create({
      model: "test-model",
      stream: true,
      messages: [{ role: "user", content: "hello" }],
    });
    const call = await world.upstream.next();
    expect(call.headers.get("authorization")).toBe(`Bearer ${MODEL_KEY}`);
    expect(call.body).toMatchObject({ model: "test-model", stream_options: { include_usage: true } });
    call.sendRaw(delta("Hel")).sendRaw(delta("lo"));
    const stream = await pendingResponse;
    const texts: string[] = [];
    call.sendRaw(chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }));
    call
      .sendRaw(chunk({ choices: [], usage: USAGE }))
      .sendRaw("data: [DONE]\n\n")
      .end();
    for await (const part of stream) {
      expect(part.choices).toHaveLength(1);
      texts.push(part.choices[0]?.delta.content ?? "");
    }
    expect(texts.join("")).toBe("Hello");
    expect(await listGatewayCalls(world.owner)).toMatchObject([
      {
        outcome: "ok",
        is_estimated: false,
        asked_model: "test-model",
        model: "test-model",
        provider_name: "My openai",
        workspace_id: null,
        input_tokens: 4,
        output_tokens: 3,
        cache_read_tokens: 8,
        cost_micros: 42,
      },
    ]);
  });

  test("[GW-2] a caller that requests usage in its stream gets every byte of the provider's response", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai-compat");
    const body = {
      model: "test-model",
      stream: true,
      stream_options: { include_usage: true },
      odd: [1],
      messages: [{ role: "user", content: "hello" }],
    };
    const pendingResponse = fetch(`${world.base}/openai/v1/chat/completions?beta=1`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${world.token}`,
        "content-type": "application/json",
        "x-stainless-lang": "js",
        "x-portkey-custom-host": "https://evil.example",
      },
      body: JSON.stringify(body),
    });
    const call = await world.upstream.next();
    expect(call.body).toEqual(body);
    expect(call.path).toBe("/v1/chat/completions?beta=1");
    expect(call.headers.get("x-stainless-lang")).toBe("js");
    // A provider that is itself a gateway would send its key there.
    expect(call.headers.get("x-portkey-custom-host")).toBeUndefined();
    const stream = `: a comment\r\n\r\n${delta("ü")}${chunk({ choices: [], usage: USAGE })}data: [DONE]\n\n`;
    call.sendRaw(stream).end();
    expect(await (await pendingResponse).text()).toBe(stream);
  });

  test.each(STREAMS)(
    "[GW-2] $api: an SDK reads the same bytes and events of a stream with and without the gateway",
    async ({ kind, base, open }) => {
      await using world = await openGatewayWorld();
      const { provider } = await addModel(world, kind);
      void world.upstream.answerAll((call) =>
        call.say({ text: "Grüße " }, { text: "aus 東京" }, { finish: "stop" }).end(),
      );
      const readStream = async (url: string, token: string) => {
        const bytes: Promise<string>[] = [];
        const recordingFetch = Object.assign(async (...args: Parameters<typeof fetch>): Promise<Response> => {
          const response = await fetch(...args);
          bytes.push((response.clone() as Response).text());
          return response;
        }, fetch);
        const events: unknown[] = [];
        for await (const event of await open({ url, token, fetch: recordingFetch })) {
          // The headers of the response differ between the two connections.
          events.push(Object.assign({}, event, { sdkHttpResponse: undefined }));
        }
        return { events, bytes: await Promise.all(bytes) };
      };
      const throughGateway = await readStream(`${world.base}${base}`, world.token);
      // The SDKs of Anthropic and Google add the API version themselves.
      const directUrl = base.endsWith("/v1") ? provider.base_url : provider.base_url.replace(/\/v1(beta)?$/, "");
      const direct = await readStream(directUrl, MODEL_KEY);
      expect(throughGateway.events.length).toBeGreaterThan(2);
      expect(JSON.stringify(throughGateway.events)).toContain("東京");
      expect(JSON.stringify(throughGateway)).toBe(JSON.stringify(direct));
    },
  );

  test("[GW-2] Anthropic's SDK creates messages and counts tokens; the gateway forwards betas and unknown members", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "anthropic", PRICE);
    const client = anthropic(world);
    const pendingResponse = client.messages.create(
      {
        model: "test-model",
        max_tokens: 64,
        messages: [{ role: "user", content: "hello" }],
        metadata: { user_id: "x" },
      },
      { headers: { "anthropic-beta": "context-1m" } },
    );
    const call = await world.upstream.next();
    expect(call.headers.get("x-api-key")).toBe(MODEL_KEY);
    expect(call.headers.get("authorization")).toBeUndefined();
    expect(call.headers.get("anthropic-beta")).toBe("context-1m");
    call.answer(
      200,
      {
        id: "msg",
        type: "message",
        role: "assistant",
        model: "test-model-1",
        content: [{ type: "text", text: "hi" }],
        usage: { input_tokens: 5, output_tokens: 2 },
      },
      {
        "request-id": "req_77",
        "anthropic-organization-id": "org-secret",
        "anthropic-ratelimit-requests-remaining": "9",
      },
    );
    const { data, response } = await pendingResponse.withResponse();
    expect(data.content).toMatchObject([{ type: "text", text: "hi" }]);
    expect(response.headers.get("anthropic-ratelimit-requests-remaining")).toBe("9");
    expect(response.headers.get("anthropic-organization-id")).toBeNull();
    const tokenCount = client.messages.countTokens({
      model: "test-model",
      messages: [{ role: "user", content: "hello" }],
    });
    (await world.upstream.next()).answer(200, { input_tokens: 11 });
    expect((await tokenCount).input_tokens).toBe(11);
    expect(await listGatewayCalls(world.owner)).toMatchObject([
      { model: "test-model", input_tokens: 5, output_tokens: 2, cost_micros: 25, provider_request_id: "req_77" },
    ]);
  });

  test("[GW-1] Google's SDK generates content with the key in Google's header", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "google");
    const client = new GoogleGenAI({ apiKey: world.token, httpOptions: { baseUrl: `${world.base}/google` } });
    const pendingResponse = client.models.generateContent({ model: "test-model", contents: "hello" });
    const call = await world.upstream.next();
    expect(call.path).toBe("/google/v1beta/models/test-model:generateContent");
    expect(call.headers.get("x-goog-api-key")).toBe(MODEL_KEY);
    call.answer(200, {
      candidates: [{ content: { role: "model", parts: [{ text: "hi" }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 6 },
    });
    expect((await pendingResponse).text).toBe("hi");
    expect(await listGatewayCalls(world.owner)).toMatchObject([{ input_tokens: 4, output_tokens: 6, outcome: "ok" }]);
  });

  test("[GW-2] Google's dialect refuses parameters that omit usage, and no dialect accepts a compressed body", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "google");
    const body = JSON.stringify({ contents: [{ role: "user", parts: [{ text: "hello" }] }] });
    const callModel = (query: string, headers: Record<string, string> = {}) =>
      fetch(`${world.base}/google/v1beta/models/test-model:generateContent${query}`, {
        method: "POST",
        headers: { "x-goog-api-key": world.token, ...headers },
        body: headers["content-encoding"] ? Bun.gzipSync(body) : body,
      });
    const refusals = [
      ["?fields=candidates", {}, 400, "query parameter `fields`"],
      ["?%24fields=candidates", {}, 400, "query parameter `$fields`"],
      ["?alt=proto", {}, 400, "query parameter `alt`"],
      ["", { "x-goog-fieldmask": "candidates" }, 400, "header `X-Goog-FieldMask`"],
      ["", { "content-encoding": "gzip" }, 415, "without Content-Encoding"],
    ] as const;
    for (const [query, headers, status, words] of refusals) {
      const answer = await callModel(query, headers);
      expect([answer.status, await answer.text()]).toEqual([status, expect.stringContaining(words)]);
    }
    const pendingResponse = callModel("?alt=json&prettyPrint=false");
    const call = await world.upstream.next();
    expect(call.path).toEndWith(":generateContent?alt=json&prettyPrint=false");
    call.answer(200, { candidates: [], usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 0 } });
    expect((await pendingResponse).status).toBe(200);
  });

  test("[GW-2] refuses ambiguous bodies, and accepts a token in the URL only in Google's dialect", async () => {
    await using world = await openGatewayWorld();
    const googlePath = "/google/v1beta/models/test-model:generateContent";
    const openaiPath = "/openai/v1/chat/completions";
    for (const kind of ["google", "openai-compat"] as const) await addModel(world, kind);
    const callModel = (path: string, body: object, query = "", headers: Record<string, string> = {}) =>
      fetch(`${world.base}${path}${query}`, { method: "POST", headers, body: JSON.stringify(body) });
    const bearer = { authorization: `Bearer ${world.token}` };
    const contents = [{ role: "user", parts: [{ text: "hello" }] }];
    const chat = { model: "test-model", messages: [{ role: "user", content: "hello" }] };
    const refusals = [
      [googlePath, { contents, model: "models/other" }, "names the model"],
      [googlePath, { contents, generationConfig: {}, generation_config: {} }, "mean the same"],
      [googlePath, { contents, systemInstruction: {}, system_instruction: {} }, "mean the same"],
      [googlePath, { contents, generationConfig: { maxOutputTokens: "9" } }, "must be a number"],
      [openaiPath, { ...chat, stream: "true" }, "`stream` must be true or false"],
      [openaiPath, { ...chat, stream: 1 }, "`stream` must be true or false"],
      [openaiPath, { ...chat, max_tokens: "100000" }, "must be a number"],
      [openaiPath, { ...chat, n: true }, "must be a number"],
      [openaiPath, { ...chat, stream_options: { include_usage: "yes" } }, "must be true or false"],
      ["/openai/v1/responses", { model: "test-model", input: "x", background: "true" }, "`background` must be"],
    ] as const;
    for (const [path, body, words] of refusals) {
      const answer = await callModel(path, body, "", bearer);
      expect([body, answer.status, await answer.text()]).toEqual([body, 400, expect.stringContaining(words)]);
    }
    expect((await callModel(openaiPath, chat, `?key=${world.token}`)).status).toBe(401);
    const pendingResponse = callModel(googlePath, { contents, model: "models/test-model" }, `?key=${world.token}`);
    const call = await world.upstream.next();
    expect(call.path).toEndWith(":generateContent");
    call.answer(200, { candidates: [], usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 0 } });
    expect((await pendingResponse).status).toBe(200);
  });

  test("[GW-2] an answer keeps the server's own headers, omits instructions for proxies, and is never an HTML page", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai-compat");
    const pendingResponse = fetch(`${world.base}/openai/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${world.token}` },
      body: JSON.stringify({ model: "test-model", messages: [{ role: "user", content: "hello" }] }),
    });
    (await world.upstream.next()).answer(
      200,
      { choices: [] },
      {
        "content-type": "text/html",
        "content-security-policy": "default-src *",
        "x-frame-options": "ALLOWALL",
        "cross-origin-resource-policy": "cross-origin",
        "access-control-allow-origin": "*",
        "x-ratelimit-remaining": "7",
        "x-accel-redirect": "/internal/key",
        "x-sendfile": "/etc/shadow",
        "x-lighttpd-send-file": "/etc/shadow",
        "x-reproxy-url": "http://127.0.0.1/key",
        "x-slipway-node": "sign",
        "cache-control": "public, max-age=600",
        "cdn-cache-control": "max-age=600",
        "surrogate-control": "max-age=600",
      },
    );
    const { headers } = await pendingResponse;
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
    const proxyInstructions =
      /^(?:cross-origin|access-control|x-accel|x-sendfile|x-lighttpd|x-reproxy|x-slipway|cdn|surrogate)/;
    expect([...headers.keys()].filter((name) => proxyInstructions.test(name))).toEqual([]);
    expect(headers.get("x-ratelimit-remaining")).toBe("7");
  });

  test("[GW-4] each SDK lists the model names that its caller can use", async () => {
    await using world = await openGatewayWorld();
    const { provider } = await addModel(world, "openai");
    await putGatewaySettings(world.owner, {
      names: [
        { name: "fast", targets: [{ provider_id: provider.id, model: "gpt-x" }] },
        { name: "any-*", targets: [{ provider_id: provider.id }] },
      ],
    });
    const { data } = await openai(world).models.list();
    expect(data.map(({ id }) => id)).toEqual(["fast", "test-model"]);
    expect((await anthropic(world).models.list()).data).toEqual([]);
  });
});

describe("callers", () => {
  const post = (world: GatewayWorld, headers: Record<string, string>, path = "/anthropic/v1/messages") =>
    fetch(`${world.base}${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify({ model: "test-model", messages: [{ role: "user", content: "hello" }] }),
    });

  test("[GW-1] refuses missing, wrong and insufficient tokens and workspace agents' tokens, in each dialect", async () => {
    await using world = await openGatewayWorld();
    const insufficientToken = await createGatewayToken(world.owner, ["workspace:read"]);
    const withoutToken = await post(world, {});
    expect([withoutToken.status, await withoutToken.json()]).toMatchObject([
      401,
      { type: "error", error: { type: "authentication_error" } },
    ]);
    const withWrongToken = await post(
      world,
      { authorization: "Bearer abcdefghij-abcdefghijklmnopqrstuv" },
      "/openai/v1/responses",
    );
    expect([withWrongToken.status, await withWrongToken.json()]).toMatchObject([
      401,
      { error: { code: "invalid_api_key", type: "invalid_request_error" } },
    ]);
    const withInsufficientToken = await post(
      world,
      { "x-goog-api-key": insufficientToken },
      "/google/v1beta/models/x:generateContent",
    );
    expect([withInsufficientToken.status, await withInsufficientToken.json()]).toMatchObject([
      403,
      { error: { code: 403, status: "PERMISSION_DENIED" } },
    ]);
    const withCookie = await post(world, { cookie: `service_session_token=${world.token}` });
    expect(withCookie.status).toBe(401);
    const withAgentToken = await post(world, { "x-api-key": crypto.randomUUID() });
    expect(withAgentToken.status).toBe(401);
    expect(await listGatewayCalls(world.owner)).toEqual([]);
    expect(world.upstream.connections).toBe(0);
  });

  test("[GW-1] a token that is limited to models allows nothing else", async () => {
    await using world = await openGatewayWorld();
    const client = new Client(world.server.url, world.token);
    expect((await client.fetch("GET", "/api/v2/workspaces")).status).toBe(403);
    expect((await client.fetch("GET", "/api/v2/ai/settings")).status).toBe(403);
  });

  test("[GW-4] [GW-8] calls no provider while the gateway is disabled, for an unknown model, or for an unknown path", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai");
    const client = openai(world);
    const create = (model: string) =>
      client.chat.completions.create({ model, messages: [{ role: "user", content: "hello" }] });
    const getRejection = (pendingResponse: PromiseLike<unknown>) =>
      pendingResponse.then(
        () => undefined,
        (error) => error as object,
      );
    expect(await getRejection(create("gpt-unknown"))).toMatchObject({ status: 404, code: "model_not_found" });
    const retrieval = client.responses.retrieve("resp_1");
    expect(await getRejection(retrieval)).toMatchObject({ status: 404, code: "unknown_url" });
    await putGatewaySettings(world.owner, { enabled: false });
    expect(await getRejection(create("test-model"))).toMatchObject({ status: 403, code: "gateway_disabled" });
    expect(world.upstream.connections).toBe(0);
  });

  test("[GW-10] only owners configure the gateway and see all calls", async () => {
    await using world = await openGatewayWorld();
    const { owner, server, organization_id } = world;
    await addModel(world, "openai");
    const body = {
      email: "m@example.com",
      username: "mia",
      password: "correct-horse-battery",
      organization_ids: [organization_id],
    };
    await owner.post("/api/v2/users", body);
    const mia = await new Client(server.url).signIn(body.email, body.password);
    for (const method of ["GET", "PUT"]) {
      const requestBody =
        method === "PUT" ? { enabled: true, in_workspaces: true, names: [], default_names: {} } : undefined;
      expect((await mia.fetch(method, "/api/v2/ai/settings", requestBody)).status).toBe(403);
    }
    void world.upstream.answerAll((call) => call.answer(200, { model: "test-model", usage: USAGE }));
    const token = await createGatewayToken(mia);
    await openai({ base: world.base, token }).chat.completions.create({
      model: "test-model",
      messages: [{ role: "user", content: "hello" }],
    });
    await openai(world).chat.completions.create({
      model: "test-model",
      messages: [{ role: "user", content: "hello" }],
    });
    expect((await listGatewayCalls(mia)).map(({ username }) => username)).toEqual(["mia"]);
    expect((await listGatewayCalls(owner)).map(({ username }) => username)).toHaveLength(2);
    const [ownCall] = await listGatewayCalls(owner);
    expect((await mia.fetch("GET", `/api/v2/ai/calls?user_id=${ownCall?.user_id}`)).status).toBe(403);
    const usage = await owner.get<AiUsage>("/api/v2/ai/usage?by=user");
    expect(usage.total).toMatchObject({ request_count: 2, input_tokens: 8, output_tokens: 6 });
    expect(usage.rows.map(({ name }) => name).sort()).toContain("mia");
    const { id: user_id } = await mia.get<{ id: string }>("/api/v2/users/me");
    for (const name of ["one", "two"]) {
      const group = await owner.post<{ id: string }>(`/api/v2/organizations/${organization_id}/groups`, { name });
      await owner.patch(`/api/v2/groups/${group.id}`, { add_users: [user_id] });
    }
    const groups = await owner.get<AiUsage>("/api/v2/ai/usage?by=group");
    expect(groups.rows.map(({ name, request_count }) => `${name} ${request_count}`).sort()).toEqual([
      " 1",
      "one 1",
      "two 1",
    ]);
    expect(groups.total.request_count).toBe(2);
    const getFirstDay = async (offset: string): Promise<string | undefined> =>
      (await mia.get<AiUsage>(`/api/v2/ai/usage?by=day&start_date=2020-01-01T00:00:00${encodeURIComponent(offset)}`))
        .rows[0]?.key;
    const calledAtMs = Date.parse((await listGatewayCalls(mia))[0]?.created_at ?? "");
    const toDay = (offsetHours: number): string =>
      new Date(calledAtMs + offsetHours * 3_600_000).toISOString().slice(0, 10);
    expect([await getFirstDay("+14:00"), await getFirstDay("-12:00"), await getFirstDay("Z")]).toEqual([
      toDay(14),
      toDay(-12),
      toDay(0),
    ]);
    const unknownProvider = {
      enabled: true,
      in_workspaces: true,
      default_names: {},
      names: [{ name: "x", targets: [{ provider_id: crypto.randomUUID() }] }],
    };
    expect(await (await owner.fetch("PUT", "/api/v2/ai/settings", unknownProvider)).text()).toContain(
      "names[0].targets[0].provider_id",
    );
  });
});
