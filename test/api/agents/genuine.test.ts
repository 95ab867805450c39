// A genuine agent, which uses only the private network, has the same features as Slipway's daemon.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProcessOutput } from "#schema/agents/agent-files.ts";
import type { ListeningPorts } from "#schema/workspaces/listening-port.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { startGenuine } from "./genuine.ts";
import { TestTerminal } from "./reach.ts";

const world = await forFile(startGenuine());

const getServerContext = () => getContext(world.server);
const { agent_id } = world.seeded;

/** Starts a program in the workspace and returns the port on which it listens. */
const startProgram = async (program: string): Promise<{ port: number } & Disposable> => {
  writeFileSync(join(world.home, "listen.mjs"), program);
  const terminal = await TestTerminal.open(world, { command: `exec ${process.execPath} listen.mjs` });
  const output = await terminal.until(/port=(\d+);/);
  return { port: Number(/port=(\d+);/.exec(output)?.[1]), [Symbol.dispose]: () => terminal[Symbol.dispose]() };
};

describe("a genuine agent", () => {
  test("[TN-10] has terminals to which clients can reconnect, without a tunnel to the server", async () => {
    using first = await TestTerminal.open(world, {});
    first.sendInput({ data: "echo $((20 + 3))-there\r" });
    await first.until(/23-there/);
    first.sendInput({ data: "clear; X=kept\r" });
    using second = await TestTerminal.open(world, { id: first.id });
    second.sendInput({ data: "echo $X-still\r" });
    await second.until(/kept-still/);
    expect(getServerContext().dialer.size).toBe(0);
    expect(getServerContext().dialer.network.size).toBe(1);
  });

  test("[TN-10] serves ports, web pages of programs and the tools of chats", async () => {
    using program = await startProgram(
      `const s = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (r) => new Response("from " + new URL(r.url).pathname) });
       console.log("port=" + s.port + ";");`,
    );
    const { ports } = await world.owner.get<ListeningPorts>(world.path("listening-ports"));
    expect(ports.map(({ port }) => port)).toContain(program.port);
    const { agentHttp } = getServerContext();
    const page = await agentHttp.request(agent_id, { method: "GET", path: "/inside", port: program.port });
    expect([page.status, await page.text(1_000)]).toEqual([200, "from /inside"]);
    const json = { command: "echo $((40 + 2)) of them; exit 3" };
    const started = await agentHttp.request(agent_id, { method: "POST", path: "/api/v0/processes/start", json });
    const { id } = await started.json<{ id: string }>();
    const path = `/api/v0/processes/${id}/output?follow=1&after=0&wait_ms=10000`;
    const loadOutput = async () => (await agentHttp.request(agent_id, { method: "GET", path })).json<ProcessOutput>();
    await until(async () => JSON.stringify(await loadOutput()).includes("42 of them"));
  });

  test("[TN-10] is reached with TLS if a program requires it", async () => {
    using program = await startProgram(
      `import { spawnSync } from "node:child_process";
       spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=app", "-keyout", "key.pem", "-out", "cert.pem"]);
       const s = Bun.serve({ port: 0, hostname: "127.0.0.1", tls: { key: Bun.file("key.pem"), cert: Bun.file("cert.pem") }, fetch: () => new Response("secret ".repeat(20000)) });
       console.log("port=" + s.port + ";");`,
    );
    const request = { method: "GET", path: "/", port: program.port, tls: true };
    const page = await getServerContext().agentHttp.request(agent_id, request);
    expect((await page.text(1_000_000)).length).toBe(7 * 20_000);
    using plainProgram = await startProgram(
      `const s = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("") }); console.log("port=" + s.port + ";");`,
    );
    const plainRequest = getServerContext().agentHttp.request(agent_id, { ...request, port: plainProgram.port });
    await expect(plainRequest).rejects.toMatchObject({ failure: "refused" });
  });

  test("[TN-2][TN-10] refuses connections to its internal and to invalid ports", async () => {
    await expect(getServerContext().dialer.dial(agent_id, 5)).rejects.toMatchObject({ failure: "refused" });
    await expect(getServerContext().dialer.dial(agent_id, 70_000)).rejects.toMatchObject({ failure: "refused" });
  });

  test("[TN-12] can be reached immediately after a kill and a restart; connections to the previous process break", async () => {
    const before = await getServerContext().dialer.dial(agent_id, 4);
    await world.replace();
    const { ports } = await world.owner.get<ListeningPorts>(world.path("listening-ports"));
    expect(Array.isArray(ports)).toBe(true);
    expect(await before.closed).toMatchObject({ failure: "closed" });
  });

  test("[TN-12] is disconnected immediately when a newer build replaces it", async () => {
    const { dialer, topics } = getServerContext();
    const stream = await dialer.dial(agent_id, 4);
    topics.publish("agent_gone", agent_id, {});
    expect(await stream.closed).toMatchObject({ failure: "closed" });
    expect(dialer.network.size).toBe(0);
  });
});
