// `slipway ssh`, `ping`, `speedtest` and `port-forward` with the real program, a real server, and the daemon of a real local workspace.
import { describe, expect, test } from "bun:test";
import { type AddressInfo, connect, createServer } from "node:net";
import { constants } from "node:os";
import type { ConnectionLog } from "#schema/connections.ts";
import type { Inbox } from "#schema/notifications/notification.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { type ClientWorld, openDevWorld } from "./client-world.ts";

const world = await forFile(openDevWorld());

const listConnections = async (q: string): Promise<ConnectionLog[]> => {
  const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  const path = `/api/v2/connectionlog?${new URLSearchParams({ q })}`;
  return (await admin.get<{ connection_logs: ConnectionLog[] }>(path)).connection_logs;
};

const ssh = (command: string, options: Parameters<ClientWorld["run"]>[1] = {}) =>
  world.run(["ssh", "dev", "--", command], options);

describe("slipway ssh", () => {
  test("[CN-2] [WN-1] [WN-2] forwards input, both outputs and the exit code, which reports signals as shells do", async () => {
    expect(await ssh("cat; echo problem >&2; exit 7", { stdin: "in and out" })).toMatchObject({
      code: 7,
      out: "in and out",
      err: expect.stringContaining("problem\n"),
    });
    expect((await ssh("kill -TERM $$")).code).toBe(128 + 15);
    expect((await ssh("kill -USR1 $$")).code).toBe(128 + constants.signals.SIGUSR1);
    expect((await ssh("#!/bin/sh\necho $0-$((40+2))")).out).toContain("42");
    const { out } = await ssh('echo "$USER|$LOGNAME|$SLIPWAY_WORKSPACE_NAME|$HOME"; pwd');
    const [names, folder] = out.trim().split("\n");
    expect(names).toMatch(/^(\w[\w-]*)\|\1\|dev\|\//);
    expect(folder).toBe(names?.split("|")[3]);
  });

  test("[CN-2] binary bytes pass through both outputs unchanged", async () => {
    const child = world.spawn(["ssh", "dev", "--", "printf '\\377\\376'; printf '\\377\\376' >&2"]);
    const bytes = [await child.stdout.bytes(), await child.stderr.bytes()];
    expect(bytes.map((output) => [...output])).toEqual([
      [0xff, 0xfe],
      [0xff, 0xfe],
    ]);
  });

  test("[CN-2] [WN-2] megabytes pass both ways unchanged", async () => {
    const data = crypto.getRandomValues(new Uint8Array(60_000));
    const input = new Uint8Array(3_000_000).map((_, i) => (data[i % data.byteLength] as number) ^ (i >> 16));
    const { out, code } = await ssh("tee copy | sha1sum; sha1sum < copy; rm copy", { stdin: input });
    const sha = new Bun.CryptoHasher("sha1").update(input).digest("hex");
    expect([code, out]).toEqual([0, `${sha}  -\n${sha}  -\n`]);
  });

  test("[CN-2] [WN-3] gives a terminal user a shell with their size and keys", async () => {
    await using terminal = world.runOnTerminal("slipway ssh dev; echo left-$?");
    await terminal.until(/[#$] $/);
    terminal.type("stty size; echo $TERM\r");
    await terminal.until(/24 80\r\nxterm\r\n/);
    terminal.resize(100, 30);
    terminal.type("until [ \"$(stty size)\" = '30 100' ]; do :; done; echo re''sized\r");
    await terminal.until("resized\r\n");
    terminal.type("sh -c 'echo rea\"\"dy; exec cat'\r");
    await terminal.until("ready\r\n");
    terminal.type("\u0003");
    await terminal.until(/[#$] $/);
    terminal.type("exit 5\r");
    await terminal.until("left-5");
    expect(await terminal.exited).toBe(0);
  });

  test("[CN-2] explains a missing workspace and an invalid variable", async () => {
    expect(await world.run(["ssh", "nothing", "--", "true"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("there is no workspace nothing"),
    });
    expect(await world.run(["ssh", "dev", "--env", "odd", "--", "true"])).toMatchObject({ code: 2 });
  });
});

testNeeding(
  [needs.root],
  "[DM-27] [AG-25] a workspace with a full home stays reachable, and its page, its log and its owner's inbox report it",
  async () => {
    const home = (await ssh('printf %s "$HOME"')).out;
    const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
    Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0777", "tmpfs", home]);
    try {
      Bun.spawnSync(["sh", "-c", `cat /dev/zero > ${home}/fill`]);
      const loadWorkspace = () => admin.get<Workspace>("/api/v2/users/me/workspace/dev");
      const getAgent = ({ latest_build }: Workspace) => latest_build.resources.flatMap(({ agents }) => agents ?? [])[0];
      const agent = await until(async () => {
        const found = getAgent(await loadWorkspace());
        return found?.resources?.home?.level === "full" ? found : undefined;
      });
      expect(agent.resources?.home).toEqual({ path: home, used_bytes: 2 ** 21, total_bytes: 2 ** 21, level: "full" });
      expect(agent.resources?.memory?.total_bytes).toBeGreaterThan(2 ** 27);
      expect((await ssh("echo > more || echo refused; echo $((40+2))")).out).toBe("refused\n42\n");
      await using terminal = world.runOnTerminal("slipway ssh dev; echo left-$?");
      await terminal.until(/[#$] $/);
      terminal.type("exit 5\r");
      await terminal.until("left-5");
      const lines = await admin.get<{ output: string }[]>(`/api/v2/workspaceagents/${agent.id}/logs`);
      expect(lines.map(({ output }) => output)).toContain(`The disk of ${home} is full: free some space.`);
      const { notifications } = await admin.get<Inbox>("/api/v2/notifications/inbox");
      expect(notifications.filter(({ title }) => title === "The disk of dev is full")).toMatchObject([
        { content: `2.0 MiB of 2.0 MiB are used in ${home}. Delete files that you no longer need.` },
      ]);
      Bun.spawnSync(["rm", `${home}/fill`]);
      await until(async () => getAgent(await loadWorkspace())?.resources?.home?.level === "ok");
    } finally {
      Bun.spawnSync(["umount", "-l", home]);
    }
  },
);

test("[CG-2] the connection log contains sessions and ports with their user and outcome", async () => {
  await ssh("exit 7");
  // The newest entry is first. A session is listed shortly after its client has ended.
  await until(async () => (await listConnections("type:ssh status:completed"))[0]?.ssh_info?.exit_code === 7);
  const [entry] = await listConnections("type:ssh status:completed");
  expect(entry).toMatchObject({
    user: { username: ADMIN.username },
    workspace_name: "dev",
    ip: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
    ssh_info: { exit_code: 7 },
  });
  expect(
    await listConnections(`type:ssh username:${ADMIN.username} connection_id:${entry?.ssh_info?.connection_id}`),
  ).toHaveLength(1);
});

test("[CN-1] a session ends immediately with an explanation when its token is revoked", async () => {
  const token = (await world.runOk(["tokens", "create", "short-lived"])).trim().split(/\s/)[0] as string;
  const env = { SLIPWAY_URL: world.server.url.origin, SLIPWAY_TOKEN: token };
  await using terminal = world.runOnTerminal("slipway ssh dev -- 'echo begun; exec sleep 20'; echo left-$?", env);
  await terminal.until("begun");
  const startedAt = performance.now();
  await world.runOk(["tokens", "remove", "short-lived"]);
  await terminal.until("the server revoked your access");
  await terminal.until("left-1");
  expect(performance.now() - startedAt).toBeLessThan(15_000);
});

test("[CN-5] ping reports milliseconds, speedtest megabytes in each direction", async () => {
  const pings = (await world.runOk(["ping", "dev", "--count", "2", "--json"]))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(pings).toHaveLength(2);
  for (const { milliseconds } of pings) expect(milliseconds).toBeGreaterThan(0);
  for (const direction of ["down", "up"]) {
    const text = await world.runOk(["speedtest", "dev", "--time", "0.5s", "--direction", direction, "--json"]);
    const { bytes, megabytes_per_second } = JSON.parse(text);
    expect(bytes).toBeGreaterThanOrEqual(65_536);
    expect(megabytes_per_second).toBeGreaterThan(0);
  }
});

/** Returns the response of a local UDP port. Repeats the request, because datagrams may be lost. */
const exchangeDatagram = async (port: number, text: string): Promise<string> => {
  const received = Promise.withResolvers<string>();
  const socket = await Bun.udpSocket({
    hostname: "127.0.0.1",
    socket: { data: (_, data) => received.resolve(String(data)), error() {} },
  });
  const timer = setInterval(() => socket.send(text, port, "127.0.0.1"), 200);
  try {
    return await received.promise;
  } finally {
    clearInterval(timer);
    socket.close();
  }
};

describe("slipway port-forward", () => {
  /** Starts the program and returns the local ports that it prints. */
  const startForwarding = async (...args: string[]) => {
    const child = world.spawn(["port-forward", "dev", ...args]);
    const reader = child.stderr.getReader();
    let printed = "";
    const forwardCount = args.length / 2;
    while ((printed.match(/forwards to port/g) ?? []).length < forwardCount) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`port-forward ended: ${printed}`);
      printed += new TextDecoder().decode(value);
    }
    const ports = [...printed.matchAll(/127\.0\.0\.1:(\d+) forwards/g)].map(([, port]) => Number(port));
    return {
      ports,
      child,
      async [Symbol.asyncDispose]() {
        child.kill("SIGINT");
        await child.exited;
      },
    };
  };

  test("[CN-6] [WN-7] forwards TCP ports both ways to the workspace's loopback; a port without a listener is refused", async () => {
    using app = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => new Response(await request.bytes()),
    });
    // A port without an option is a TCP port.
    await using forward = await startForwarding(`0:${app.port}`, "--tcp", "0:19");
    const body = new Uint8Array(1_500_000).map((_, i) => i * 7 + (i >> 9));
    const response = await fetch(`http://127.0.0.1:${forward.ports[0]}/`, { method: "POST", body });
    expect(Buffer.compare(await response.bytes(), body)).toBe(0);
    await expect(fetch(`http://127.0.0.1:${forward.ports[1]}/`)).rejects.toThrow();
    forward.child.kill("SIGINT");
    expect(await forward.child.exited).toBe(130);
    const ports = await listConnections("type:port_forwarding");
    expect(ports.map(({ target, user }) => [target, user?.username])).toEqual([[String(app.port), ADMIN.username]]);
  });

  test("[CN-6] after one side is closed, the other side's data and end of stream still arrive", async () => {
    const echo = createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket)).listen(0, "127.0.0.1");
    await using forward = await startForwarding("--tcp", `0:${(echo.address() as AddressInfo).port}`);
    const socket = connect({ port: forward.ports[0] as number, host: "127.0.0.1", allowHalfOpen: true });
    const body = Buffer.alloc(500_000, "all of it ");
    socket.end(body);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    expect(Buffer.compare(Buffer.concat(chunks), body)).toBe(0);
    echo.close();
  });

  test("[CN-6] [WN-8] forwards UDP ports, and replies reach their sender", async () => {
    const echo = await Bun.udpSocket({
      hostname: "127.0.0.1",
      socket: { data: (socket, data, port, address) => void socket.send(`echo ${data}`, port, address) },
    });
    await using forward = await startForwarding("--udp", `0:${echo.port}`);
    const [port] = forward.ports as [number];
    expect(await Promise.all([exchangeDatagram(port, "one"), exchangeDatagram(port, "two")])).toEqual([
      "echo one",
      "echo two",
    ]);
    echo.close();
  });

  test("[CN-6] [WN-8] forwarding continues after a UDP port without a listener and a sender that leaves before its reply", async () => {
    const unused = await Bun.udpSocket({ hostname: "127.0.0.1", socket: { data() {} } });
    const { port: closedPort } = unused;
    unused.close();
    const release = Promise.withResolvers<void>();
    const requested = Promise.withResolvers<void>();
    const echo = await Bun.udpSocket({
      hostname: "127.0.0.1",
      socket: {
        async data(socket, data, port, address) {
          requested.resolve();
          if (String(data) === "late") await release.promise;
          socket.send(`echo ${data}`, port, address);
        },
        error() {},
      },
    });
    await using forward = await startForwarding("--udp", `0:${closedPort}`, "--udp", `0:${echo.port}`);
    const [closedForward, echoForward] = forward.ports as [number, number];
    const leavingSender = await Bun.udpSocket({ hostname: "127.0.0.1", socket: { data() {}, error() {} } });
    for (let sent = 0; sent < 20; sent++) leavingSender.send("is anybody there?", closedForward, "127.0.0.1");
    const timer = setInterval(() => leavingSender.send("late", echoForward, "127.0.0.1"), 100);
    await requested.promise;
    clearInterval(timer);
    leavingSender.close();
    release.resolve();
    expect(await exchangeDatagram(echoForward, "still there")).toBe("echo still there");
    expect(forward.child.exitCode).toBe(null);
    expect((await ssh("echo the daemon, too")).out).toBe("the daemon, too\n");
    echo.close();
  });

  test("[CN-6] names an unavailable port and rejects invalid ones", async () => {
    const blocker = createServer().listen(0, "127.0.0.1");
    const { port } = blocker.address() as { port: number };
    const { code, err } = await world.run(["port-forward", "dev", "--tcp", `${port}:80`]);
    expect([code, err]).toEqual([1, expect.stringContaining(`cannot listen on 127.0.0.1:${port}`)]);
    blocker.close();
    for (const invalid of ["x", "1:2:3:4", "70000", "10-5", "1-3:1-2", "1:0"]) {
      expect((await world.run(["port-forward", "dev", "--tcp", invalid])).code).toBe(2);
      expect((await world.run(["port-forward", "dev", invalid])).code).toBe(2);
    }
  });

  test("[WO-8] starts a stopped workspace and holds connections until it runs", async () => {
    await world.runOk(["workspaces", "stop", "dev"]);
    using app = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("held") });
    const placeholder = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => placeholder.once("listening", resolve));
    const { port } = placeholder.address() as AddressInfo;
    await new Promise((resolve) => placeholder.close(resolve));
    const refused = await world.run(["port-forward", "dev", "--tcp", `${port}:80`, "--disable-autostart"]);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("dev is stopped")]);
    const child = world.spawn(["port-forward", "dev", "--tcp", `${port}:${app.port}`]);
    const fetchText = () =>
      fetch(`http://127.0.0.1:${port}`).then(
        (response) => response.text(),
        () => undefined,
      );
    expect(await until(fetchText)).toBe("held");
    child.kill("SIGINT");
    await child.exited;
  });
});
