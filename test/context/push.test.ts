// Validation of an agent's pushes by the server, over a real connection.
import { expect, test } from "bun:test";
import { formatContext } from "#actors/chat/prompt/context-blocks.ts";
import { findSnapshot, findWorkspaceContext } from "#db/chats/context.ts";
import { Client } from "#src/client.ts";
import type { Context } from "#src/context/context.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";

/** Returns a workspace's stored context: its version and its snapshot. */
const loadContext = async ({ store }: Pick<Context, "store">, workspace_id: string) => {
  const row = await store.get(findWorkspaceContext({ workspace_id }));
  return { version: row?.version, snapshot: await store.get(findSnapshot({ id: row?.snapshot ?? "" })) };
};

const makeFile = (source: string, content: Uint8Array = Buffer.from("x")) => ({
  source,
  sizeBytes: BigInt(content.byteLength),
  status: 1,
  body: { case: "instructionFile" as const, value: { content } },
});

test("[CX-6] the server accepts a daemon's first push and newer versions, but no older version and no push beyond the limits", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server);
  await using connection = await connectAgent(server, seeded.agent_token);
  const push = async (version: number, initial: boolean, resources: object[], snapshotError = "") =>
    (await connection.agent.pushContextState({ version: BigInt(version), initial, resources, snapshotError })).accepted;
  const describeContext = async () => {
    const { version, snapshot } = await loadContext(getContext(server), seeded.workspace_id);
    return { version, error: snapshot?.error, sources: snapshot?.resources.map(({ source }) => source) };
  };
  expect(await push(3, false, [makeFile("/a")])).toBe(true);
  expect(await push(3, false, [makeFile("/b")])).toBe(false);
  expect(await push(2, false, [makeFile("/b")])).toBe(false);
  expect(await push(4, false, [makeFile("/c")], "2 more were left out")).toBe(true);
  expect(await describeContext()).toEqual({ version: 4, error: "2 more were left out", sources: ["/c"] });
  expect(
    await push(1, true, [
      makeFile("/d"),
      { ...makeFile("/e"), status: 2 },
      { ...makeFile("/f", Buffer.alloc(0)), status: 2 },
    ]),
  ).toBe(true);
  const { snapshot } = await loadContext(getContext(server), seeded.workspace_id);
  expect(snapshot?.resources).toEqual([
    { kind: "instruction_file", status: "ok", source: "/d", size_bytes: 1, error: "", body: "x" },
    { kind: "instruction_file", status: "ok", source: "/e", size_bytes: 1, error: "", body: "x", truncated: true },
    { kind: "instruction_file", status: "oversize", source: "/f", size_bytes: 0, error: "" },
  ]);
  // A model gets the beginning of a truncated file, and a note that the file continues.
  expect(formatContext(snapshot?.resources ?? []).instructions).toEndWith(
    `<instructions file="/e">\nx\n</instructions>\n\n/e continues beyond this: read it with read_file when you need it.\n\n/f is too long to include: read it with read_file when you need it.`,
  );
  const invalidResources = [
    Array.from({ length: 1_001 }, (_, i) => makeFile(`/${i}`)),
    [makeFile("/big", new Uint8Array(256 * 1024 + 1))],
    [{ ...makeFile("/odd"), status: 9 }],
    [{ source: "/none", status: 1 }],
  ];
  for (const resources of invalidResources) {
    expect(await push(9, false, resources).catch(() => "refused")).toBe("refused");
  }
  expect(await describeContext()).toEqual({ version: 1, error: "", sources: ["/d", "/e", "/f"] });
});

test("[TO-21] secrets of the workspace's owner are masked in what its agent pushes: instructions, skills and tools", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server);
  const secrets = ["FirstPart-aaaa1111", "SecondPart-bbbb2222"] as const;
  const owner = new Client(server.url, seeded.owner_token);
  await owner.post("/api/v2/users/me/secrets", { name: "pair", value: secrets.join("\n") });
  await using connection = await connectAgent(server, seeded.agent_token);
  const [first, second] = secrets;
  await connection.agent.pushContextState({
    version: 1n,
    initial: true,
    snapshotError: `broken by ${first}`,
    resources: [
      makeFile("/AGENTS.md", Buffer.from(`use ${first}\nand ${seeded.agent_token}\n`)),
      {
        source: "/skills/one",
        status: 1,
        body: {
          case: "skill" as const,
          value: { name: "one", description: `with ${second}`, meta: Buffer.from(second) },
        },
      },
      {
        source: "tools",
        status: 1,
        body: {
          case: "mcpServer" as const,
          value: {
            serverName: "tools",
            tools: [{ name: "ask", description: `about ${first}`, inputSchema: { type: "object", title: second } }],
          },
        },
      },
    ],
  });
  const { snapshot } = await loadContext(getContext(server), seeded.workspace_id);
  const stored = JSON.stringify(snapshot);
  for (const secret of [...secrets, seeded.agent_token]) expect(stored).not.toContain(secret);
  expect(snapshot).toMatchObject({
    error: "broken by [hidden]",
    resources: [
      { source: "/AGENTS.md", body: "use [hidden]\nand [hidden]\n" },
      { source: "/skills/one", skill_name: "one", skill_description: "with [hidden]", body: "[hidden]" },
      {
        source: "tools",
        tools: [{ name: "ask", description: "about [hidden]", input_schema: { type: "object", title: "[hidden]" } }],
      },
    ],
  });
});

test("[TO-21] names of skills, tools and arguments, and paths, stay usable when they contain words of a secret", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server);
  const owner = new Client(server.url, seeded.owner_token);
  await owner.post("/api/v2/users/me/secrets", { name: "env", value: "PASSWORD=sunshine\nPORT=1\n" });
  await using connection = await connectAgent(server, seeded.agent_token);
  const inputSchema = { type: "object", properties: { sunshine: { title: "in sunshine" } }, required: ["sunshine"] };
  await connection.agent.pushContextState({
    version: 1n,
    initial: true,
    resources: [
      makeFile("/sunshine/AGENTS.md", Buffer.from("use sunshine")),
      {
        source: "tools",
        status: 1,
        body: {
          case: "mcpServer" as const,
          value: { serverName: "tools", tools: [{ name: "query_sunshine", description: "of sunshine", inputSchema }] },
        },
      },
    ],
  });
  const { snapshot } = await loadContext(getContext(server), seeded.workspace_id);
  const input_schema = { type: "object", properties: { sunshine: { title: "in [hidden]" } }, required: ["sunshine"] };
  expect(snapshot?.resources).toMatchObject([
    { source: "/sunshine/AGENTS.md", body: "use [hidden]" },
    { source: "tools", tools: [{ name: "query_sunshine", description: "of [hidden]", input_schema }] },
  ]);
});
