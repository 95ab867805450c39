// The tools of a request. Definitions of MCP servers are changed to a form that every model server accepts.
import { expect, test } from "bun:test";
import type { PromptMessage, ToolDefinition } from "#src/llm/model.ts";
import { getReceiver } from "#src/llm/request/receivers.ts";
import { createRequestTools } from "#src/llm/request/tools.ts";

const OPENAI = getReceiver("openai", { useResponses: true, base_url: "", model: "gpt-5" });
const GOOGLE = getReceiver("google", { useResponses: false, base_url: "", model: "gemini-3-pro" });

const makeTool = (name: string, input_schema: unknown, server?: string): ToolDefinition =>
  server === undefined
    ? { name, description: "Does it.", input_schema }
    : { name, description: "Does it.", input_schema, server };
const makeTools = (tools: readonly ToolDefinition[], messages: readonly PromptMessage[] = [], receiver = OPENAI) =>
  createRequestTools(receiver, tools, { messages, reserved: [] });
const toSchema = (input_schema: unknown) => makeTools([makeTool("t", input_schema)]).offered[0]?.inputSchema;

test("[MO-64] top-level alternatives become one object, and the description says which arguments belong together", () => {
  const route = { type: "object", properties: { route: { type: "string" }, file: { type: "string" } } };
  const offered = makeTools([
    makeTool("go", { ...route, oneOf: [{ required: ["route"] }, { required: ["file"] }] }),
  ]).offered;
  expect(offered).toEqual([{ name: "go", description: "Does it.\nGive route, or file.", inputSchema: route }]);
  expect(
    toSchema({
      allOf: [
        { properties: { a: { type: "string" } }, required: ["a"] },
        { properties: { b: {} }, required: ["b"] },
      ],
    }),
  ).toEqual({ type: "object", properties: { a: { type: "string" }, b: {} }, required: ["a", "b"] });
});

// biome-ignore format: a table of cases
const REPAIRED: [string, unknown, unknown][] = [
  ["no schema", undefined, { type: "object", properties: {} }],
  ["an empty schema", {}, { type: "object", properties: {} }],
  ["an object or null", { type: ["object", "null"] }, { type: "object", properties: {} }],
  ["a null description", { properties: { a: { type: "string", description: null } } }, { type: "object", properties: { a: { type: "string" } } }],
  ["a list without items", { properties: { a: { type: "array" } } }, { type: "object", properties: { a: { type: "array", items: {} } } }],
  ["a tuple", { properties: { a: { type: "array", items: [{ type: "string" }, { type: "number" }] } } },
    { type: "object", properties: { a: { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } } } }],
  ["a broken reference", { properties: { a: { $ref: "#/definitions/x", description: "x" } } }, { type: "object", properties: { a: { description: "x" } } }],
  ["a reference", { properties: { a: { $ref: "#/$defs/x" } }, $defs: { x: { type: "integer" } } }, { type: "object", properties: { a: { type: "integer" } } }],
  ["a required property that does not exist", { properties: { a: {} }, required: ["a", "b"] }, { type: "object", properties: { a: {} }, required: ["a"] }],
  ["`required` as a flag", { properties: { a: { type: "string", required: true } }, required: true }, { type: "object", properties: { a: { type: "string" } } }],
  ["a limit of an older draft", { properties: { a: { type: "number", minimum: 0, exclusiveMinimum: true } } },
    { type: "object", properties: { a: { type: "number", exclusiveMinimum: 0 } } }],
  ["types of Python", { properties: { a: { type: "str" }, b: { type: "STRING" }, c: { type: "any" } } },
    { type: "object", properties: { a: { type: "string" }, b: { type: "string" }, c: {} } }],
  ["a pattern without anchors", { properties: { a: { type: "string", pattern: "a.b" } } }, { type: "object", properties: { a: { type: "string" } } }],
  ["a type next to alternatives", { properties: { a: { type: "string", anyOf: [{ minLength: 1 }, { type: "null" }] } } },
    { type: "object", properties: { a: { anyOf: [{ minLength: 1, type: "string" }, { type: "null" }] } } }],
];
test.each(REPAIRED)("[MO-64] repairs %s", (_, schema, expected) => {
  expect(toSchema(schema)).toEqual(expected as never);
});

test("[MO-64] expands a recursive schema twice, and truncates an exponentially large schema", () => {
  const node = { type: "object", properties: { inside: { $ref: "#" } } };
  expect(JSON.stringify(toSchema(node)).match(/"inside"/g)).toHaveLength(3);
  const wide = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`p${i}`, { $ref: "#/$defs/n" }]));
  const huge = { type: "object", properties: wide, $defs: { n: { type: "object", properties: wide } } };
  expect(JSON.stringify(toSchema(huge)).length).toBeLessThan(300_000);
});

test("[MO-64] keys that model servers refuse are renamed in the request, and restored in the call", () => {
  const long = "k".repeat(70);
  const itemSchema = { type: "object", properties: { "@type": { type: "string" } } };
  const tools = makeTools([
    makeTool("q", {
      type: "object",
      properties: {
        $filter: { type: "string" },
        filter: {},
        "with blank": { type: "array", items: itemSchema },
        [long]: {},
      },
      required: ["$filter"],
    }),
  ]);
  const [offered] = tools.offered;
  const names = Object.keys(offered?.inputSchema.properties as object);
  for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/);
  const [filter = "", , blank = "", cut = ""] = names;
  expect([filter, blank, offered?.inputSchema.required]).toEqual([
    expect.stringMatching(/^filter_/),
    "with_blank",
    [filter],
  ]);
  const original = { $filter: "a", filter: "b", "with blank": [{ "@type": "c" }], [long]: 1, other: 2 };
  const offeredArgs = { [filter]: "a", filter: "b", [blank]: [{ type: "c" }], [cut]: 1, other: 2 };
  expect(tools.toOfferedArgs("q", original)).toEqual(offeredArgs);
  expect(tools.toOwnArgs("q", offeredArgs)).toEqual(original);
});

test("[MO-64] only the tool with an invalid schema is left out, with a warning that names the tool and its server", () => {
  const tools = makeTools([
    makeTool("wild__list", { type: "array", items: {} }, "Wild"),
    makeTool("wild__good", {}, "Wild"),
    makeTool("own", 5),
  ]);
  expect(tools.offered.map(({ name }) => name)).toEqual(["wild__good"]);
  expect(tools.warnings).toEqual([
    'The tool "wild__list" of the MCP server "Wild" is left out: its input schema does not describe an object.',
    'The tool "own" is left out: its input schema does not describe an object.',
  ]);
});

test("[MO-64] names have the receiver's form and are mapped back to the tool", () => {
  const tools = makeTools(
    [makeTool("looks up!", {}), makeTool("9lives", {}), makeTool("n".repeat(90), {})],
    [],
    GOOGLE,
  );
  for (const { name } of tools.offered) expect(name).toMatch(/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/);
  expect(tools.offered.map(({ name }) => tools.getOwnName(name))).toEqual(["looks up!", "9lives", "n".repeat(90)]);
  expect(tools.getOfferedName("gone.tool")).toMatch(/^gone_tool_[0-9a-f]{6}$/);
});

test("[MO-64] if there are too many tools, the built-in, called and mentioned tools are kept, in their order", () => {
  const manyTools = Array.from({ length: 150 }, (_, i) => makeTool(`many__${i}`, {}, "Many"));
  const tools = [makeTool("read_file", {}), ...manyTools, makeTool("calendar__book", {}, "Calendar")];
  const called = { type: "tool-call", tool_call_id: "1", tool_name: "many__149" } as const;
  const history: PromptMessage[] = [
    { role: "assistant", content: [called] },
    { role: "user", content: [{ type: "text", text: "put it into my calendar" }] },
  ];
  const { offered, warnings } = makeTools(tools, history);
  const names = offered.map(({ name }) => name);
  expect(names).toHaveLength(128);
  expect([names[0], names.includes("many__149"), names.at(-1)]).toEqual(["read_file", true, "calendar__book"]);
  expect(warnings).toEqual([
    'The model accepts at most 128 tools. Left out of the MCP server "Many": many__125, many__126, many__127, many__128, many__129 and 19 more.',
  ]);
});
