// JSON from outside: each client of a service refuses answers that are too expensive to parse, with an explanation.
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { JsonCost } from "#base/json/cost.ts";
import { EventCost } from "#base/json/event-cost.ts";
import { parseJson, readJson } from "#base/json/read.ts";
import { Outbound } from "#base/outbound.ts";
import { OidcClient } from "#src/authentication/oidc.ts";
import { OAuthClient } from "#src/git/oauth.ts";
import { PullHttp } from "#src/git/pulls-http.ts";
import { loadAdapter } from "#src/llm/adapters.ts";
import { toModelError } from "#src/llm/call-failure.ts";
import { listModels } from "#src/llm/model-list.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { parseImport } from "#src/provisioners/external/import-result.ts";
import { readWorkerMessage } from "#src/provisioners/external/protocol.ts";
import { findStateProblem } from "#src/provisioners/terraform/pushed-state.ts";
import { isBare, isState, MAX_STATE_BYTES, parseSerial } from "#src/provisioners/terraform/session.ts";
import { parseState, TERRAFORM_LIMITS } from "#src/provisioners/terraform/state-json.ts";
import { parseStateSecrets } from "#src/provisioners/terraform/state-secrets.ts";
import { parseAgentTokens } from "#src/provisioners/terraform/state-tokens.ts";

/** A text of 300 KB with a hundred thousand lists. */
const MANY_VALUES = `[${"[],".repeat(100_001)}0]`;
const TOO_MANY = "has more than 100000 values.";
const getErrorMessage = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "no error",
    (error: Error) => error.message,
  );

/** Answers every request with many values, also as one event of a stream. */
const service = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ url }) =>
    url.includes("stream")
      ? new Response(`event: "\ndata: ${MANY_VALUES}\n\n`, { headers: { "content-type": "text/event-stream" } })
      : new Response(MANY_VALUES, { headers: { "content-type": "application/json" } }),
});
afterAll(() => service.stop(true));
const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"] });

test("[HT-48] values are counted across chunks, ignoring characters inside strings", () => {
  const bytes = new TextEncoder().encode('{"a\\\\":"x\\",\\"[","b":[1,2,{"c":"\\\\"},[3]]}');
  const findProblem = (maxValues: number, splitAt: number): string | undefined => {
    const cost = new JsonCost({ maxValues });
    return cost.count(bytes.subarray(0, splitAt)) ?? cost.count(bytes.subarray(splitAt));
  };
  for (let splitAt = 0; splitAt <= bytes.length; splitAt++) {
    expect([findProblem(4, splitAt), findProblem(3, splitAt)], `cut at ${splitAt}`).toEqual([
      undefined,
      "has more than 3 values.",
    ]);
  }
});

test("[HT-48] all lines of an event are counted, regardless of line endings and quotes", () => {
  const findProblem = (text: string): string | undefined => {
    const cost = new EventCost({ maxValues: 5, maxBytes: 100 });
    for (const byte of new TextEncoder().encode(text)) {
      const problem = cost.count(Uint8Array.of(byte));
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
  for (const end of ["\n", "\r\n", "\r"]) {
    expect(findProblem(`data: [1,2,3,4]${end}${end}`.repeat(9))).toBeUndefined();
    expect(findProblem(`event: "${end}data: [1,2,3${end}data: ,4,5,6,7]${end}${end}`)).toBe("has more than 5 values.");
  }
  expect(findProblem(`data: ${"x".repeat(100)}`)).toBe("has an event with more than 100 bytes.");
});

test("[HT-48] a body is not read beyond its limit", async () => {
  let pulled = 0;
  let isCanceled = false;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        pulled++;
        controller.enqueue(new Uint8Array(1_000));
      },
      cancel: () => {
        isCanceled = true;
      },
    },
    { highWaterMark: 0 },
  );
  expect(await getErrorMessage(readJson({ body }, { maxBytes: 5_000 }))).toBe("is larger than 5000 bytes.");
  expect([pulled, isCanceled]).toEqual([6, true]);
  expect(() => parseJson("{")).toThrow("is not JSON.");
});

test("[HT-48] oversized responses of a git host, an account provider and an identity provider are refused", async () => {
  const http = new PullHttp({ outbound, clock: systemClock, api: service.url.origin, headers: {}, rest: () => {} });
  expect(await getErrorMessage(http.get("pull", "/pulls", (json) => json))).toBe(`The git host's response ${TOO_MANY}`);
  expect(await getErrorMessage(http.json("/pulls"))).toBe(`The git host's response ${TOO_MANY}`);
  const provider = {
    id: "git",
    token_url: service.url,
    scopes: [],
    client_id: "c",
    client_secret: "",
    credentials: "body",
  };
  const tokens = new OAuthClient(outbound).refresh(provider as never, "r");
  expect(await getErrorMessage(tokens)).toBe("The provider's response is not valid.");
  const setting = { id: "acme", issuer: service.url.origin, client_id: "c" };
  const fetch = (url: URL, init: RequestInit): Promise<Response> => outbound.open(url, init);
  const oidc = new OidcClient(setting as never, { clock: systemClock, fetch });
  expect(await getErrorMessage(oidc.begin("http://localhost/back"))).toBe(`The response of acme ${TOO_MANY}`);
});

test("[HT-48] a token with too many values is refused", async () => {
  const part = Buffer.from(MANY_VALUES).toString("base64url");
  const fetch = async (): Promise<Response> => Response.json({ id_token: `e30.${part}.x` });
  const oidc = new OidcClient({ id: "acme", issuer: "https://acme.example", client_id: "c" } as never, {
    clock: systemClock,
    fetch,
  });
  expect(await getErrorMessage(oidc.begin("http://localhost/back"))).toBe(`The response of acme ${TOO_MANY}`);
});

test("[HT-48] a model server's oversized response or event fails the call", async () => {
  const listRequest = { provider: "openai-compat", base_url: service.url.origin, key: "" } as const;
  expect(await listModels(fetch, listRequest, AbortSignal.timeout(5_000))).toEqual([]);
  const target = { provider: { provider: "openai", display_name: "" } as never, key: "k", now: () => 0 };
  const kinds = ["openai", "anthropic", "google", "openai-compat"] as const;
  for (const kind of kinds) {
    const { model } = await loadAdapter(kind, {
      base_url: `${service.url.origin}/stream`,
      key: "k",
      model: "m",
      useResponses: true,
      clock: systemClock,
      fetch: (input, init) => fetch(input, init),
    });
    const read = async (): Promise<void> => {
      const { stream } = await model({ streamOptions: true }).doStream({
        prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      });
      for await (const part of stream) if (part.type === "error") throw part.error;
    };
    const error: unknown = await read().catch((reason: unknown) => reason);
    const { kind: problem, message: explanation } = toModelError(error, target);
    expect([kind, problem, explanation]).toEqual([kind, "config", `Its answer ${TOO_MANY}`]);
  }
});

test("[HT-48] a Docker Engine's oversized response is refused", async () => {
  const engine = new Engine(`tcp://${service.hostname}:${service.port}`, systemClock);
  const large = `[${"[],".repeat(500_001)}0]`;
  using hostileServer = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(large) });
  expect(await engine.json("list images", "GET", "/images/json")).toHaveLength(100_002);
  const hostile = new Engine(`tcp://${hostileServer.hostname}:${hostileServer.port}`, systemClock);
  const expected = "The Docker Engine could not list images: its answer has more than 500000 values.";
  expect(await getErrorMessage(hostile.json("list images", "GET", "/images/json"))).toBe(expected);
  const bytes = hostile.bytes("read a file", "/archive", {}, 1_000);
  expect(await getErrorMessage(bytes)).toBe(
    "The Docker Engine could not read a file: its answer is larger than 1000 bytes.",
  );
});

test("[HT-48] a worker's messages and a pushed state with too many values are refused", () => {
  expect(readWorkerMessage('{"type":"alive"}')).toEqual({ type: "alive" });
  expect(readWorkerMessage(`{"type":"alive","more":${MANY_VALUES}}`)).toBeUndefined();
  const large = `[${"0,".repeat(1_000_001)}0]`;
  expect(() => parseImport(large)).toThrow("The worker returned an invalid template.");
  const state = `{"version":4,"lineage":"l","serial":1,"resources":[],"outputs":[${"0,".repeat(2_000_001)}0]}`;
  expect(findStateProblem(state)).toBe("must be a Terraform state, which is a JSON object");
  // A state that is too large is not treated as empty: the workspace of an empty state can be deleted.
  expect(isBare(state)).toBe(false);
  for (const parse of [parseState, parseSerial, parseStateSecrets, parseAgentTokens])
    expect(() => parse(state)).toThrow("The state has more than 2000000 values. Split the workspace's template");
  expect([isBare("no JSON"), isBare("{}"), isBare(null)]).toEqual([true, true, true]);
});

test("[HT-48] a plan of ten thousand resources and a state of sixteen megabytes are read", () => {
  const attributes = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`name_${index}`, `value ${index}`]));
  const change = { actions: ["create"], before: null, after: attributes, after_unknown: attributes };
  const resource = { mode: "managed", type: "null_resource", name: "one", values: attributes, change };
  const resources = Array.from({ length: 10_000 }, () => resource);
  const plan = JSON.stringify({ planned_values: { root_module: { child_modules: [{ resources }] } } });
  expect(parseJson(plan, TERRAFORM_LIMITS)).toBeObject();
  const instances = [{ schema_version: 0, attributes: { ...attributes, tags: [1, 2, 3] } }];
  const managed = { mode: "managed", type: "null_resource", name: "one", provider: "p", instances };
  const state = { version: 4, lineage: "l", serial: 1, resources: [managed] };
  const size = JSON.stringify(managed).length + 1;
  state.resources = Array.from({ length: Math.floor(MAX_STATE_BYTES / size) - 1 }, () => managed);
  const text = JSON.stringify(state);
  expect(text.length).toBeGreaterThan(MAX_STATE_BYTES - 5_000);
  expect([findStateProblem(text), isState(text), isBare(text)]).toEqual([undefined, true, false]);
});
