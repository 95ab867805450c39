// Unusual histories: from any provider, interrupted anywhere, with the IDs, names, arguments and schemas that real servers produce. For
// property tests of the requests that are built from them.
import fc from "fast-check";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { PromptMessage, ProviderMetadata, ToolDefinition } from "#src/llm/model.ts";

const IDS = [
  ...["call_abc123", "toolu_01AbCdEf", "functions.execute:0", "functions.execute:1", "call_Q1|fc_0f", "execute:0"],
  ...["abc123XYZ", "", "with blank", "chatcmpl-tool-9f8e7d6c5b4a3f2e1d0c9b8a7f6e5d4c3b2a1908", "x".repeat(90), "é:1"],
] as const;
const NAMES = [
  "execute",
  "read_file",
  "functions.execute",
  "looks up!",
  "9lives",
  "n".repeat(90),
  "web_search",
] as const;
const TEXTS = ["hello", "please run the tests", "", " ", "\n\n", "a\u2028b", "  done  "] as const;

const text = fc.constantFrom(...TEXTS).map((value): MessagePart => ({ type: "text", text: value }));
const metadata = fc.constantFrom<ProviderMetadata | undefined>(
  { anthropic: { signature: "signed" } },
  { openai: { itemId: "rs_1", reasoningEncryptedContent: "sealed" } },
  { google: { thoughtSignature: "signed" } },
  undefined,
);
const reasoning = fc
  .tuple(fc.constantFrom("hm", ""), metadata)
  .map(([words, provider_metadata]): MessagePart => ({ type: "reasoning", text: words, provider_metadata }));
const args = fc.constantFrom<unknown>({}, { command: "ls" }, [], ["a"], "text", null, 5, {
  $filter: "x",
  "@type": "y",
});
const call = fc.tuple(fc.constantFrom(...IDS), fc.constantFrom(...NAMES), args, metadata).map(
  ([tool_call_id, tool_name, callArgs, provider_metadata]): MessagePart => ({
    type: "tool-call",
    tool_call_id,
    tool_name,
    args: callArgs,
    provider_metadata,
  }),
);
const providerCall = fc
  .tuple(fc.constantFrom("srvtoolu_01", "ws_01"), fc.constantFrom("anthropic", "openai", "google"))
  .chain(([tool_call_id, provider]) => {
    const call = { tool_call_id, tool_name: "web_search", provider_executed: true };
    const found: MessagePart[] = [
      { ...call, type: "tool-call", args: { query: "x" }, provider_metadata: { slipway: { provider } } },
      { ...call, type: "tool-result", result: [], provider_metadata: { slipway: { provider, result: [] } } },
    ];
    // The provider may be interrupted between the two.
    return fc.constantFrom(found, found.slice(0, 1));
  });
const answer = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: text.map((part) => [part]) },
    { weight: 2, arbitrary: reasoning.map((part) => [part]) },
    { weight: 4, arbitrary: call.map((part) => [part]) },
    { weight: 1, arbitrary: providerCall },
  ),
  { maxLength: 5 },
);

/** What happens to the results of calls: answered, lost or answered twice. */
const outcomesOfCalls = fc.array(fc.constantFrom("answered", "answered", "answered", "lost", "twice"), {
  minLength: 6,
  maxLength: 6,
});
const results = fc.constantFrom<unknown>({ output: "ok" }, "", "words", null, { error: "no" }, ["a"]);

const messageGroup = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.array(text, { maxLength: 3 }).map((content): PromptMessage[] => [{ role: "user", content }]),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(answer, outcomesOfCalls, results, fc.boolean())
      .map(([parts, outcomes, result, isTogether]): PromptMessage[] => {
        const content = parts.flat();
        const calls = content.filter(({ type, provider_executed }) => type === "tool-call" && !provider_executed);
        const answers = calls.flatMap(({ tool_call_id, tool_name }, index): MessagePart[] => {
          const toolResult: MessagePart = {
            type: "tool-result",
            tool_call_id,
            tool_name,
            result,
            is_error: index % 2 === 1,
          };
          return outcomes[index] === "lost"
            ? []
            : outcomes[index] === "twice"
              ? [toolResult, toolResult]
              : [toolResult];
        });
        const rows = isTogether ? [answers] : answers.map((answer) => [answer]);
        return [{ role: "assistant", content }, ...rows.map((row): PromptMessage => ({ role: "tool", content: row }))];
      }),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(...IDS)
      .map((tool_call_id): PromptMessage[] => [
        { role: "tool", content: [{ type: "tool-result", tool_call_id, tool_name: "execute", result: "orphan" }] },
      ]),
  },
);

/** Histories that are truncated anywhere at both ends. */
export const histories: fc.Arbitrary<readonly PromptMessage[]> = fc
  .tuple(
    fc.array(messageGroup, { minLength: 1, maxLength: 8 }),
    fc.constantFrom("Be kind.", "", "  "),
    fc.nat({ max: 3 }),
    fc.nat({ max: 2 }),
  )
  .map(([groups, system, skipped, cut]) => {
    const messages = groups.flat();
    const selected = messages.slice(Math.min(skipped, messages.length - 1), Math.max(1, messages.length - cut));
    return [{ role: "system", content: [{ type: "text", text: system }] }, ...selected];
  });

const leaf = fc.constantFrom<unknown>(
  { type: "string" },
  { type: ["string", "null"], description: null },
  { type: "array" },
  { type: "array", items: [{ type: "string" }, { type: "integer" }] },
  { type: "array", items: true },
  { type: "object" },
  { $ref: "#/definitions/nowhere" },
  { $ref: "#/$defs/tree" },
  { type: "number", minimum: 0, exclusiveMinimum: true },
  { type: "string", pattern: "a.b" },
  { type: "string", enum: [] },
  { type: "str" },
  { type: "string", anyOf: [{ minLength: 1 }, { type: "null" }] },
  true,
  null,
  {},
);
const properties = fc.dictionary(
  fc.constantFrom("path", "$filter", "@type", "with blank", "k".repeat(80), "a.b", "é", "__proto__"),
  leaf,
  { maxKeys: 5 },
);
const tree = { type: "object", properties: { name: { type: "string" }, inside: { $ref: "#/$defs/tree" } } };
const schema = fc.oneof(
  fc
    .tuple(properties, fc.constantFrom<unknown>(["path"], ["nowhere"], true, null, undefined))
    .map(([schemaProperties, required]): unknown => ({
      type: "object",
      properties: schemaProperties,
      required,
      $defs: { tree },
    })),
  fc.tuple(properties, properties).map(([rootProperties, branchProperties]): unknown => ({
    type: "object",
    properties: rootProperties,
    oneOf: [
      { required: Object.keys(rootProperties) },
      { properties: branchProperties, required: Object.keys(branchProperties) },
    ],
  })),
  fc.constantFrom<unknown>(
    {},
    null,
    true,
    { type: "object" },
    { type: ["object", "null"] },
    { type: "array", items: {} },
    { type: "string" },
    { $ref: "#/$defs/tree", $defs: { tree } },
    { allOf: [{ $ref: "#/$defs/tree" }, { properties: { more: { type: "array" } } }], $defs: { tree } },
    {
      anyOf: [
        { type: "object", properties: { a: {} } },
        { type: "object", properties: { b: {} } },
      ],
    },
  ),
);

/** No tools, some, or more than any server accepts. */
export const toolSets: fc.Arbitrary<readonly ToolDefinition[]> = fc
  .tuple(fc.array(fc.tuple(fc.constantFrom(...NAMES), schema), { maxLength: 6 }), fc.constantFrom(0, 0, 0, 0, 150))
  .map(([definitions, extraCount]) => [
    ...definitions.map(
      ([name, input_schema]): ToolDefinition => ({ name, description: "Does it.", input_schema, server: "Wild" }),
    ),
    ...Array.from({ length: extraCount }, (_, index): ToolDefinition => {
      const input_schema = { type: "object", properties: {} };
      return { name: `many__${index}`, description: "One of many.", input_schema, server: "Many" };
    }),
  ]);
