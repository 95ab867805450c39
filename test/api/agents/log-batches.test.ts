// Batches of log lines that an agent repeats with the same Idempotency-Key header.
import { expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";

test("[LG-23] the same lines with the same key are stored once; other lines with that key are rejected", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server);
  const agent = new Client(server.url, seeded.agent_token);
  const send = async (key: string, output: string) => {
    const logs = [{ output }];
    const options = { headers: { "Idempotency-Key": key } };
    return (await agent.fetch("PATCH", "/api/v2/workspaceagents/me/logs", { logs }, options)).status;
  };
  expect([await send("one", "a"), await send("one", "a"), await send("one", "b")]).toEqual([200, 200, 409]);
  expect([await send("one two", "b"), await send("two", "c"), await send("x two", "c")]).toEqual([200, 200, 200]);
  const owner = new Client(server.url, seeded.owner_token);
  const lines = await owner.get<{ output: string }[]>(`/api/v2/workspaceagents/${seeded.agent_id}/logs`);
  expect(lines.map(({ output }) => output)).toEqual(["a", "b", "c", "c"]);
});
