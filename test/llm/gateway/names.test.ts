// Endpoints and names of the gateway, as pure functions.
import { describe, expect, test } from "bun:test";
import type { ModelCatalog } from "#actors/models/model-settings.ts";
import { estimateTokens } from "#domain/ai/ledger.ts";
import { listNames, listTargets, type ModelCaller, matchesPattern } from "#domain/ai/names.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import type { ConfiguredModel, ConfiguredProvider } from "#src/llm/configured-model.ts";
import { CallBodyError, readCallBody } from "#src/llm/gateway/call-body.ts";
import { type Endpoint, findEndpoint } from "#src/llm/gateway/endpoint.ts";

const makeProvider = (id: string, kind: ConfiguredProvider["provider"], enabled = true): ConfiguredProvider => ({
  id,
  provider: kind,
  display_name: id,
  base_url: "",
  enabled,
  has_api_key: true,
  key: () => "k",
});
const makeModel = (provider_id: string, name: string, enabled = true): ConfiguredModel => ({
  id: `${provider_id}/${name}`,
  provider_id,
  model: name,
  display_name: name,
  enabled,
  is_default: false,
  context_limit: 1,
  compression_threshold: null,
  model_config: {},
});

const catalog: ModelCatalog = {
  providers: [
    makeProvider("a", "anthropic"),
    makeProvider("b", "anthropic"),
    makeProvider("o", "openai"),
    makeProvider("off", "anthropic", false),
  ],
  models: [
    makeModel("a", "claude-1"),
    makeModel("a", "claude-off", false),
    makeModel("off", "claude-2"),
    makeModel("o", "gpt-1"),
  ],
  settings: {
    enabled: true,
    in_workspaces: true,
    recording: { enabled: false, days: 30 },
    names: [
      { name: "opus*[1m]", targets: [{ provider_id: "a", model: "claude-1" }, { provider_id: "b" }] },
      { name: "secret-*", targets: [{ provider_id: "a" }], group_ids: ["g"] },
      { name: "lab", targets: [{ provider_id: "b", model: "x" }], template_ids: ["t"] },
      { name: "gpt-*", targets: [{ provider_id: "a" }, { provider_id: "off" }] },
    ],
    default_names: { openai: "gpt-1" },
  },
};
const ANONYMOUS: ModelCaller = { groups: [], template_id: undefined };
const listTargetNames = (dialect: "anthropic" | "openai", name: string, caller = ANONYMOUS): string[] =>
  listTargets(catalog, dialect, name, caller).map((target) => `${target.provider.id}:${target.model}`);

describe("names", () => {
  test("[GW-4] resolve to the targets of the first matching entry, in order, or to an enabled model of that name", () => {
    expect(listTargetNames("anthropic", "opus-4-8[1m]")).toEqual(["a:claude-1", "b:opus-4-8[1m]"]);
    expect(listTargetNames("anthropic", "claude-1")).toEqual(["a:claude-1"]);
    expect(listTargetNames("anthropic", "claude-off")).toEqual([]);
    expect(listTargetNames("anthropic", "claude-2")).toEqual([]);
    expect(listTargetNames("anthropic", "gpt-1")).toEqual(["a:gpt-1"]);
  });

  test("[GW-4] of another dialect are unknown; an unknown name uses the dialect's default, if there is one", () => {
    expect(listTargetNames("anthropic", "what")).toEqual([]);
    expect(listTargetNames("openai", "claude-1")).toEqual([]);
  });

  test("[GW-4] restricted to a group or a template do not exist for other callers, and are not in their lists", () => {
    expect(listTargetNames("anthropic", "secret-1")).toEqual([]);
    expect(listTargetNames("anthropic", "secret-1", { groups: ["g"], template_id: undefined })).toEqual(["a:secret-1"]);
    expect(listTargetNames("anthropic", "lab")).toEqual([]);
    expect(listTargetNames("anthropic", "lab", { groups: [], template_id: "t" })).toEqual(["b:x"]);
    expect(listNames(catalog, "anthropic", ANONYMOUS)).toEqual(["opus*[1m]", "gpt-*", "claude-1", "gpt-1"]);
    expect(listNames(catalog, "anthropic", { groups: [], template_id: "t" })).toContain("lab");
  });

  test.each([
    ["claude-*", "claude-", true],
    ["claude-*", "claude", false],
    ["*-mini", "gpt-5-mini", true],
    ["a*b*c", "a1b2c", true],
    ["a*b*c", "abc", true],
    ["ab*ba", "aba", false],
    ["a*b*b", "ab", false],
    ["*", "", true],
    ["a.c", "abc", false],
  ])("[GW-4] %s and %s: %p", (pattern, name, expected) => {
    expect(matchesPattern(pattern, name)).toBe(expected);
  });
});

describe("endpoints", () => {
  test.each([
    ["anthropic", "POST", "/v1/messages", "generate"],
    ["anthropic", "POST", "/messages/", "generate"],
    ["anthropic", "POST", "/v1/messages/count_tokens", "count"],
    ["anthropic", "HEAD", "/", "probe"],
    ["openai", "POST", "/v1/responses", "generate"],
    ["openai", "POST", "/v1/embeddings", "embed"],
    ["openai", "GET", "/v1/models", "models"],
    ["google", "POST", "/v1beta/models/gemini-3:streamGenerateContent", "generate"],
    ["google", "POST", "/v1/models/gemini-3:countTokens", "count"],
  ] as const)("[GW-8] %s %s %s is %s", (dialect, method, path, kind) => {
    expect(findEndpoint(dialect, method, path)?.kind).toBe(kind);
  });

  test.each([
    ["openai", "GET", "/v1/responses/resp_1"],
    ["openai", "GET", "/v1/files"],
    ["openai", "POST", "/v1/batches"],
    ["openai", "POST", "/v1/chat/completions/../files"],
    ["anthropic", "POST", "/v1/messages/batches"],
    ["google", "POST", "/v1beta/models/x:batchGenerateContent"],
    ["google", "POST", "/v1beta/models/../files:generateContent"],
    ["google", "GET", "/v1beta/files"],
    ["google", "POST", "/v1beta/models/%ZZ:generateContent"],
  ] as const)("[GW-8] %s %s %s is not forwarded", (dialect, method, path) => {
    expect(findEndpoint(dialect, method, path)).toBeUndefined();
  });
});

describe("bodies", () => {
  const getEndpoint = (path: string) =>
    findEndpoint("openai", "POST", path) as NonNullable<ReturnType<typeof findEndpoint>>;
  const encode = (value: unknown) =>
    new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
  const gemini = findEndpoint("google", "POST", "/v1beta/models/m:generateContent") as Endpoint;
  const estimateOutput = (api: Endpoint, value: object, kind: ProviderKind = "openai"): number =>
    estimateTokens(readCallBody(api, encode(Object.assign({ model: "m" }, value))), kind).output_tokens;

  test("[GW-2] are forwarded unchanged unless a name is mapped or a stream would not report its usage", () => {
    const body = encode('{"model": "m",  "unknown": [1.50], "messages": []}');
    expect(readCallBody(getEndpoint("/chat/completions"), body).bytesFor("m")).toBe(body);
    const mapped = JSON.parse(
      new TextDecoder().decode(readCallBody(getEndpoint("/chat/completions"), body).bytesFor("n")),
    );
    expect(mapped).toEqual({ model: "n", unknown: [1.5], messages: [] });
    const stream = readCallBody(
      getEndpoint("/chat/completions"),
      encode({ model: "m", stream: true, stream_options: { x: 1 } }),
    );
    expect(stream).toMatchObject({ hidesUsage: true, streams: true });
    expect(JSON.parse(new TextDecoder().decode(stream.bytesFor("m"))).stream_options).toEqual({
      x: 1,
      include_usage: true,
    });
    expect(readCallBody(getEndpoint("/responses"), encode({ model: "m", stream: true })).hidesUsage).toBe(false);
  });

  test.each([
    ["no JSON", "{"],
    ["a list", "[]"],
    ["no model", { messages: [] }],
    ["a model that is not a string", { model: 1 }],
    ["a response in the background", { model: "m", background: true }],
  ])("[GW-2] %s is refused", (_, value) => {
    expect(() => readCallBody(getEndpoint("/responses"), encode(value))).toThrow(CallBodyError);
  });

  test("[GW-6] only a limit of the called API lowers the reservation, because providers ignore the limits of other APIs", () => {
    const limits = {
      max_tokens: 1,
      max_completion_tokens: 1,
      max_output_tokens: 1,
      generationConfig: { maxOutputTokens: 1, candidateCount: 1 },
    };
    const [chat, responses] = [getEndpoint("/chat/completions"), getEndpoint("/responses")];
    const messages = findEndpoint("anthropic", "POST", "/v1/messages") as Endpoint;
    const cases: [Endpoint, (keyof typeof limits)[]][] = [
      [chat, ["max_tokens", "max_completion_tokens"]],
      [responses, ["max_output_tokens"]],
      [messages, ["max_tokens"]],
      [gemini, ["generationConfig"]],
    ];
    for (const [api, names] of cases) {
      const others = Object.fromEntries(
        Object.entries(limits).filter(([name]) => !names.includes(name as "max_tokens")),
      );
      expect([api.path, estimateOutput(api, others)]).toEqual([api.path, estimateOutput(api, {})]);
      expect([api.path, estimateOutput(api, limits)]).toEqual([api.path, 1]);
    }
    // Servers with OpenAI's API may not know the newer member.
    expect(estimateOutput(chat, { max_completion_tokens: 1 }, "openai-compat")).toBe(estimateOutput(chat, {}));
    expect(estimateOutput(chat, { max_tokens: 5, max_completion_tokens: 1 }, "openai-compat")).toBe(5);
    // Gemini ignores `n`, and the other APIs ignore candidates.
    expect(estimateOutput(gemini, { n: 1, generationConfig: { maxOutputTokens: 10, candidateCount: 8 } })).toBe(80);
    expect(estimateOutput(messages, { max_tokens: 10, n: 3 })).toBe(10);
  });

  test("[GW-6] several answers multiply the reservation, limited to what a model could answer", () => {
    const output = (value: object): number => estimateOutput(getEndpoint("/chat/completions"), value);
    expect(output({ max_tokens: 100, n: 5 })).toBe(500);
    expect(output({ n: 2 })).toBe(2 * output({}));
    expect(estimateOutput(gemini, { generationConfig: { maxOutputTokens: 100, candidateCount: 3 } })).toBe(300);
    expect(output({ max_tokens: 10.5 })).toBe(11);
    for (const max_tokens of [1e12, 1e308, 131_073]) expect(output({ max_tokens })).toBe(131_072);
    expect(output({ max_tokens: 1e308, n: 1e308 })).toBe(1_048_576);
    for (const n of [0, -1, null]) expect(output({ max_tokens: 100, n })).toBe(100);
    expect(() => output({ max_tokens: 100, n: "7" })).toThrow("`n` must be a number");
    const absurd = encode('{"model":"m","max_tokens":1e308,"n":0.5}');
    expect(readCallBody(getEndpoint("/chat/completions"), absurd).bytesFor("m")).toBe(absurd);
  });

  test.each([
    ["fallbacks", ["secret"], "another model"],
    ["models", ["dear"], "another model"],
    ["provider", { order: ["x"] }, "another model"],
    ["api_base", "https://evil.example", "another model"],
    ["extra_body", { model: "dear" }, "another model"],
    ["n_predict", -1, "max_tokens"],
    ["N_Predict", -1, "max_tokens"],
    ["service_tier", "priority", "costs more"],
    ["speed", "fast", "costs more"],
    ["inference_geo", "us", "costs more"],
    ["tools", [{ type: "advisor_20260301", name: "advisor", model: "dear" }], "another model"],
    ["tools", [{ type: "advisor_20260301", name: "advisor" }], "another model"],
    ["tools", [{ type: "x", config: { nested: [{ model: "dear" }] } }], "another model"],
    ["tools", [{ type: "openrouter:advisor", parameters: '{"model":"dear"}' }], "another model"],
    ["tool_choice", { type: "x", model: "dear" }, "another model"],
    ["input", [{ type: "additional_tools", tools: [{ type: "image_generation", model: "dear" }] }], "another model"],
    ["moderation", { model: "dear" }, "another model"],
    ["generationConfig", { routingConfig: { manualMode: { modelName: "dear" } } }, "another model"],
    ["generationConfig", { modelSelectionConfig: { featureSelectionPreference: 1 } }, "another model"],
    ["context_management", { edits: [{ type: "compact_20260112" }] }, "don't count"],
    ["context_management", [{ type: "compaction", compact_threshold: 1_000 }], "don't count"],
    // Case-insensitive parsers read these as the names above.
    ["Fallbacks", ["dear"], "another model"],
    ["Speed", "fast", "Write `speed`"],
    ["\u017fervice_tier", "priority", "Write `service_tier`"],
  ])("[GW-18] refuses `%s` with the value %p, which prices and restrictions do not cover", (name, value, expected) => {
    const toBody = (memberValue: unknown) =>
      encode(
        Object.fromEntries([
          ["model", "m"],
          [name, memberValue],
        ]),
      );
    expect(() => readCallBody(getEndpoint("/chat/completions"), toBody(value))).toThrow(expected);
    expect(readCallBody(getEndpoint("/chat/completions"), toBody(null)).model).toBe("m");
  });

  test.each([
    ["service_tier", "default"],
    ["service_tier", "flex"],
    ["serviceTier", "standard"],
    ["speed", "standard"],
    ["inference_geo", "global"],
    ["tools", [{ type: "function", function: { name: "f", parameters: { properties: { model: {} } } } }]],
    ["tools", [{ name: "f", input_schema: { type: "object", properties: { model: { enum: ["a"] } } } }]],
    ["input", [{ role: "user", content: [{ type: "input_text", text: "model" }], model: "kept" }]],
    ["context_management", { edits: [{ type: "clear_tool_uses_20250919" }] }],
    ["metadata", { Models: "x", service_tier: "priority" }],
  ])("[GW-18] forwards `%s` with the value %p, which the model's price covers", (name, value) => {
    const body = encode(Object.assign({ model: "m" }, Object.fromEntries([[name, value]])));
    expect(readCallBody(getEndpoint("/chat/completions"), body).bytesFor("m")).toBe(body);
  });

  test.each([
    ['{"model":"a","model":"b"}', "`model` twice"],
    ['{"model":"a","m\\u006fdel":"b"}', "`model` twice"],
    ['{"model":"a","input":[{"role":"user","content":"\\"x\\\\"},{"type":"a","type":"b"}]}', "`type` twice"],
    ['{"model":"a","Model":"b"}', "`Model`. Write `model`"],
    ['{"model":"a","max_output_tokens":1,"MAX_OUTPUT_TOKENS":9}', "`MAX_OUTPUT_TOKENS`"],
    ['{"model":"a","\u017ftream":true}', "Write `stream`"],
    ['{"model":"a","input":[{"Type":"item_reference","Id":"x"}]}', "Write `type`"],
  ])("[GW-2] a body that another parser would read differently is refused: %s", (body, expected) => {
    expect(() => readCallBody(getEndpoint("/responses"), encode(body))).toThrow(expected);
  });

  test("[GW-2] a body with too many values to check quickly is refused; text may have any length", () => {
    const read = (x: string) => () => readCallBody(getEndpoint("/responses"), encode(`{"model":"m","x":${x}}`));
    const long = "[0],{}:".repeat(300_000);
    expect(read(JSON.stringify(`"\\${long}"`))).not.toThrow();
    const names = Array.from({ length: 160_000 }, (_, i) => `"${i}":0`).join();
    for (const x of [`[${"0,".repeat(1_000_001)}0]`, `[${"{},".repeat(160_000)}0]`, "[".repeat(160_000), `{${names}}`])
      expect(read(x)).toThrow("too many values");
    expect(read(`[${"0,".repeat(990_000)}0]`)).not.toThrow();
  });

  test("[GW-2] names may repeat in different objects, and names that the caller chooses may have any spelling", () => {
    const body = encode(
      '{"model":"m","input":[{"role":"user","content":"\\\\"},{"role":"user","content":"{\\"a\\":1,\\"a\\":2}"}],' +
        '"tools":[{"parameters":{"properties":{"Model":{},"model":{}}}}],"metadata":{"ID":"x","id":"y"},"a":[],"b":{},"c":[{}]}',
    );
    expect(readCallBody(getEndpoint("/responses"), body).bytesFor("m")).toBe(body);
  });

  const DATA = "A".repeat(600_000);
  test.each([
    ["chat completions", { type: "image_url", image_url: { url: "https://example.com/a.png" } }],
    ["chat completions, with its data", { type: "image_url", image_url: { url: `data:image/png;base64,${DATA}` } }],
    ["responses", { type: "input_image", image_url: `data:image/png;base64,${DATA}` }],
    ["Anthropic", { type: "image", source: { type: "base64", media_type: "image/png", data: DATA } }],
    ["Gemini", { inlineData: { mimeType: "image/png", data: DATA } }],
  ])("[GW-6] an image of %s counts as an image, regardless of its size", (_, part) => {
    const body = { model: "m", messages: [{ role: "user", content: [part, part] }] };
    const { prompt_tokens } = readCallBody(getEndpoint("/chat/completions"), encode(body));
    expect(prompt_tokens).toBeGreaterThan(3_200);
    expect(prompt_tokens).toBeLessThan(3_400);
  });

  test.each([
    ["a document for OpenAI", 100_000, { type: "input_file", file_url: "https://example.com/a.pdf" }],
    [
      "a document for Anthropic",
      100_000,
      { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
    ],
    ["a document for Gemini", 100_000, { fileData: { mimeType: "application/pdf", fileUri: "https://example.com/a" } }],
    ["a video for Gemini", 300_000, { file_data: { file_uri: "https://www.youtube.com/watch?v=1" } }],
  ])("[GW-6] %s that the provider fetches counts, regardless of its URL", (_, tokens, part) => {
    const { prompt_tokens } = readCallBody(
      getEndpoint("/chat/completions"),
      encode({ model: "m", input: [part, part] }),
    );
    expect(prompt_tokens).toBeGreaterThan(2 * tokens);
    expect(prompt_tokens).toBeLessThan(2 * tokens + 200);
  });

  const chat = getEndpoint("/chat/completions");
  const google = findEndpoint("google", "POST", "/models/m:generateContent") as ReturnType<typeof getEndpoint>;
  const PDF = "J".repeat(6_000);
  test.each([
    ["a PDF for Anthropic", chat, { input: [{ type: "document", source: { type: "base64", data: PDF } }] }],
    ["a PDF for OpenAI", chat, { input: [{ type: "input_file", file_data: PDF }] }],
    ["a PDF for Gemini", google, { input: [{ inlineData: { mimeType: "application/pdf", data: PDF } }] }],
    ["a fetch by Anthropic", chat, { tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] }],
    ["a search by OpenAI", chat, { tools: [{ type: "web_search" }] }],
    ["a search by chat completions", chat, { web_search_options: {} }],
    ["an MCP server of the caller", chat, { mcp_servers: [{ type: "url", url: "https://example.com", name: "a" }] }],
    ["code run by Anthropic", chat, { tools: [{ type: "code_execution_20250825", name: "code_execution" }] }],
    ["an MCP server for OpenAI", chat, { tools: [{ type: "mcp", server_url: "https://example.com" }] }],
    ["pages for Gemini", google, { tools: [{ urlContext: {} }] }],
    ["the old search of Gemini", google, { tools: [{ googleSearchRetrieval: {} }] }],
    ["code run by Gemini", google, { tools: [{ functionDeclarations: [] }, { codeExecution: {} }] }],
  ] as const)("[GW-6] %s counts as a document, because the provider makes the prompt larger", (_, call, part) => {
    const { prompt_tokens } = readCallBody(call, encode(Object.assign({ model: "m" }, part)));
    expect(prompt_tokens).toBeGreaterThan(99_999);
    expect(prompt_tokens).toBeLessThan(100_200);
  });

  test.each([
    [
      "functions",
      chat,
      {
        tools: [
          { type: "function", function: { name: "f" } },
          { name: "g", input_schema: {} },
        ],
      },
    ],
    [
      "an editor and a shell",
      chat,
      { tools: [{ type: "text_editor_20250728", name: "e" }, { type: "bash_20250124" }] },
    ],
    ["functions for Gemini", google, { tools: [{ functionDeclarations: [{ name: "f" }] }] }],
  ] as const)("[GW-6] %s that the caller runs count as their bytes", (_, call, part) => {
    expect(readCallBody(call, encode(Object.assign({ model: "m" }, part))).prompt_tokens).toBeLessThan(100);
  });

  test("[GW-6] an inline video counts as a recording, however few bytes it has", () => {
    const body = encode({ contents: [{ parts: [{ inlineData: { mimeType: "video/mp4", data: "AAAA" } }] }] });
    expect(readCallBody(google, body).prompt_tokens).toBeGreaterThan(299_999);
  });

  test("[GW-6] a document of plain text and the results of earlier searches count as their bytes", () => {
    const text = { type: "document", source: { type: "text", data: "x".repeat(300) } };
    const results = { type: "web_search_tool_result", content: [] };
    const body = encode({ model: "m", messages: [{ role: "user", content: [text, results] }] });
    expect(readCallBody(getEndpoint("/chat/completions"), body).prompt_tokens).toBeLessThan(300);
  });

  const messages = findEndpoint("anthropic", "POST", "/messages") as ReturnType<typeof getEndpoint>;
  const responses = getEndpoint("/responses");
  test.each([
    ["previous_response_id", responses, { previous_response_id: "resp_1" }],
    ["conversation", responses, { conversation: { id: "conv_1" } }],
    ["prompt.id", responses, { prompt: { id: "pmpt_1" } }],
    ["item_reference", responses, { input: [{ type: "item_reference", id: "msg_1" }] }],
    ["file_id", responses, { input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }] }],
    [
      "file_id",
      getEndpoint("/chat/completions"),
      { messages: [{ content: [{ type: "file", file: { file_id: "f" } }] }] },
    ],
    ["vector_store_ids", responses, { tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }],
    ["container", responses, { tools: [{ type: "code_interpreter", container: "cntr_1" }] }],
    ["file_ids", responses, { tools: [{ type: "code_interpreter", container: { type: "auto", file_ids: ["f"] } }] }],
    ["container", messages, { container: "container_1" }],
    ["container.id", messages, { container: { id: "container_1" } }],
    ["file_id", messages, { messages: [{ content: [{ type: "document", source: { type: "file", file_id: "f" } }] }] }],
    ["cachedContent", google, { cachedContent: "cachedContents/1" }],
    [
      "fileUri",
      google,
      {
        contents: [{ parts: [{ fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/1" } }] }],
      },
    ],
    ...[
      "HTTPS://Generativelanguage.googleapis.com./v1beta/files/1",
      "https://generativelanguage.googleapis.com?/v1beta/files/1",
      "https://generativelanguage.%67oogleapis.com/v1beta/files/1",
      "https://me@generativelanguage.googleapis.com\\v1beta/files/1",
    ].map((fileUri): [string, Endpoint, object] => [
      "fileUri",
      google,
      { contents: [{ parts: [{ fileData: { fileUri } }] }] },
    ]),
    ["item_reference", responses, { input: [{ id: "msg_1" }] }],
    ["item_reference", responses, { input: [{ type: null, id: "msg_1" }] }],
    ["image_generation_call", responses, { input: [{ type: "image_generation_call", id: "ig_1" }] }],
    ["reasoning", responses, { input: [{ type: "reasoning", id: "rs_1", summary: [] }] }],
    ["computer_call", responses, { input: [{ type: "computer_call", id: "cu_1" }] }],
    ["compaction", responses, { input: [{ type: "compaction", id: "cmp_1" }] }],
    ["container_id", responses, { input: [{ type: "code_interpreter_call", id: "ci", container_id: "c", code: "x" }] }],
    ["of_tomorrow", responses, { input: [{ type: "of_tomorrow", id: "x_1" }] }],
    ["skill_id", responses, { tools: [{ environment: { skills: [{ type: "skill_reference", skill_id: "s" }] } }] }],
    ["audio.id", getEndpoint("/chat/completions"), { messages: [{ role: "assistant", audio: { id: "audio_1" } }] }],
    ["skill_id", messages, { container: { skills: [{ type: "custom", skill_id: "skill_1" }] } }],
    ["fileUri", google, { contents: [{ parts: [{ fileData: { fileUri: "gs://o/x" } }] }] }],
    [
      "fileUri",
      google,
      {
        contents: [{ parts: [{ functionResponse: { name: "x", parts: [{ file_data: { file_uri: "files/o" } }] } }] }],
      },
    ],
    ["cachedContent", google, { generateContentRequest: { cachedContent: "cachedContents/1" } }],
  ])("[GW-14] a reference to data that the provider stores is refused by its name: %s", (name, api, value) => {
    const body = encode(Object.assign({ model: "m" }, value));
    expect(() => readCallBody(api, body)).toThrow(`\`${name}\``);
  });

  test.each([
    ["no reference", responses, { store: false, previous_response_id: null, conversation: null, include: [] }],
    [
      "a tool with such a parameter",
      responses,
      {
        tools: [
          { type: "function", name: "t", parameters: { properties: { file_id: { type: "string" } }, file_id: "x" } },
        ],
      },
    ],
    [
      "a call of a tool",
      messages,
      { messages: [{ content: [{ type: "tool_use", id: "t", name: "t", input: { file_id: "x", container: "y" } }] }] },
    ],
    [
      "a file that a sandbox wrote",
      messages,
      { messages: [{ content: [{ type: "bash_code_execution_output", file_id: "x" }] }] },
    ],
    ["a new container", responses, { tools: [{ type: "code_interpreter", container: { type: "auto" } }] }],
    [
      "a function call of Gemini",
      google,
      { contents: [{ parts: [{ functionCall: { name: "t", args: { cachedContent: "x" } } }] }] },
    ],
    [
      "a function response of Gemini",
      google,
      { contents: [{ parts: [{ functionResponse: { name: "t", response: { fileData: { fileUri: "files/o" } } } }] }] },
    ],
    ["a skill from Anthropic", messages, { container: { skills: [{ type: "anthropic", skill_id: "pptx" }] } }],
    [
      "history with its content",
      responses,
      {
        input: [
          { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "x" }] },
          { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" },
          { type: "function_call", id: "fc_1", call_id: "c", name: "t", arguments: "{}" },
          { type: "image_generation_call", id: "ig_1", result: "aGk=" },
        ],
      },
    ],
    [
      "a public video",
      google,
      { contents: [{ parts: [{ fileData: { fileUri: "https://www.youtube.com/watch?v=1" } }] }] },
    ],
  ])("[GW-14] %s is forwarded unchanged", (_, api, value) => {
    const body = encode(Object.assign({ model: "m" }, value));
    expect(readCallBody(api, body).bytesFor("m")).toBe(body);
  });
});
