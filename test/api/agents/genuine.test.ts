// A genuine agent, which uses only the private network, supports the same features as Slipway's daemon.
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

const context = () => getContext(world.server);
const agent = (): string => world.seeded.agent_id;

/** Starts a program of the workspace and returns the port it listens on. */
const startProgram = async (program: string): Promise<{ port: number } & Disposable> => {
  writeFileSync(join(world.home, "listen.mjs"), program);
  const terminal = await TestTerminal.open(world, { command: `exec ${process.execPath} listen.mjs` });
  const output = await terminal.until(/port=(\d+);/);
  return { port: Number(/port=(\d+);/.exec(output)?.[1]), [Symbol.dispose]: () => terminal[Symbol.dispose]() };
};

describe("a genuine agent", () => {
  test("[TN-10] has a terminal that clients can return to, and no tunnel to the server", async () => {
    using first = await TestTerminal.open(world, {});
    first.sendInput({ data: "echo $((20 + 3))-there\r" });
    await first.until(/23-there/);
    first.sendInput({ data: "clear; X=kept\r" });
    using again = await TestTerminal.open(world, { id: first.id });
    again.sendInput({ data: "echo $X-still\r" });
    await again.until(/kept-still/);
    expect(context().dialer.size).toBe(0);
    expect(context().dialer.network.size).toBe(1);
  });

  test("[TN-10] serves its ports, its programs' pages and the tools of chats", async () => {
    using program = await startProgram(
      `const s = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (r) => new Response("from " + new URL(r.url).pathname) });
       console.log("port=" + s.port + ";");`,
    );
    const { ports } = await world.owner.get<ListeningPorts>(world.path("listening-ports"));
    expect(ports.map(({ port }) => port)).toContain(program.port);
    const { agentHttp } = context();
    const page = await agentHttp.request(agent(), { method: "GET", path: "/inside", port: program.port });
    expect([page.status, await page.text(1_000)]).toEqual([200, "from /inside"]);
    const json = { command: "echo $((40 + 2)) of them; exit 3" };
    const started = await agentHttp.request(agent(), { method: "POST", path: "/api/v0/processes/start", json });
    const { id } = await started.json<{ id: string }>();
    const path = `/api/v0/processes/${id}/output?follow=1&after=0&wait_ms=10000`;
    const output = async () => (await agentHttp.request(agent(), { method: "GET", path })).json<ProcessOutput>();
    await until(async () => JSON.stringify(await output()).includes("42 of them"));
  });

  test("[TN-10] gets TLS from the server if a program requires it", async () => {
    using program = await startProgram(
      `import { spawnSync } from "node:child_process";
       spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=app", "-keyout", "key.pem", "-out", "cert.pem"]);
       const s = Bun.serve({ port: 0, hostname: "127.0.0.1", tls: { key: Bun.file("key.pem"), cert: Bun.file("cert.pem") }, fetch: () => new Response("secret ".repeat(20000)) });
       console.log("port=" + s.port + ";");`,
    );
    const requested = { method: "GET", path: "/", port: program.port, tls: true };
    const page = await context().agentHttp.request(agent(), requested);
    expect((await page.text(1_000_000)).length).toBe(7 * 20_000);
    using plain = await startProgram(
      `const s = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("") }); console.log("port=" + s.port + ";");`,
    );
    const refused = context().agentHttp.request(agent(), { ...requested, port: plain.port });
    await expect(refused).rejects.toMatchObject({ failure: "refused" });
  });

  test("[TN-2][TN-10] refuses ports that are not offered", async () => {
    await expect(context().dialer.dial(agent(), 5)).rejects.toMatchObject({ failure: "refused" });
    await expect(context().dialer.dial(agent(), 70_000)).rejects.toMatchObject({ failure: "refused" });
  });

  test("[TN-12] is reached immediately after it was killed and restarted; connections to the previous process break", async () => {
    const before = await context().dialer.dial(agent(), 4);
    await world.replace();
    const { ports } = await world.owner.get<ListeningPorts>(world.path("listening-ports"));
    expect(Array.isArray(ports)).toBe(true);
    expect(await before.closed).toMatchObject({ failure: "closed" });
  });

  test("[TN-12] is disconnected immediately when its build is no longer the latest", async () => {
    const { dialer, topics } = context();
    const stream = await dialer.dial(agent(), 4);
    topics.publish("agent_gone", agent(), {});
    expect(await stream.closed).toMatchObject({ failure: "closed" });
    expect(dialer.network.size).toBe(0);
  });
});
