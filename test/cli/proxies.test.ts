// The configurations in docs/proxies.md, unchanged, with the real programs: https, WebSockets, live events, client addresses, uploads, and
// apps on their own hosts. Caddy is tested if it is installed.
import { expect, spyOn, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { startAppWorld } from "#test/api/applications/app-world.ts";
import { findFirstBlock, readPage } from "#test/support/documents.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { makeCertificate } from "./certificate.ts";
import { runVerb } from "./run-verb.ts";

const readDocumentedConfig = (language: string): string => findFirstBlock(readPage("docs/proxies.md"), language);

/** Returns two free ports below the ephemeral range, so that they stay free until the proxy binds them. */
const findFreePorts = async (): Promise<[number, number]> => {
  const ports: number[] = [];
  while (ports.length < 2) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise<void>((resolve) => server.close(() => resolve()));
    if (!ports.includes(port)) ports.push(port);
  }
  return ports as [number, number];
};

type ProxySetup = { folder: string; cert: string; key: string; upstream: string; https: number; http: number };
/** Starts the proxy. Resolves once the proxy listens, with a function that stops it. */
type StartProxy = (setup: ProxySetup) => Promise<() => Promise<void>>;

const runProgram = async (argv: string[], folder: string): Promise<void> => {
  const env = { PATH: Bun.env.PATH ?? "", HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: Bun.file(join(folder, "stderr")), env });
  if ((await child.exited) !== 0) throw new Error(`${argv.join(" ")}: ${readFileSync(join(folder, "stderr"), "utf8")}`);
};

const fillTemplate = (text: string, { cert, key, upstream }: ProxySetup): string =>
  text
    .replaceAll("127.0.0.1:7080", upstream)
    .replaceAll("/etc/ssl/slipway/fullchain.pem", cert)
    .replaceAll("/etc/ssl/slipway/key.pem", key);

const startNginx: StartProxy = async (setup) => {
  const { folder } = setup;
  const config = fillTemplate(readDocumentedConfig("nginx"), setup)
    .replace("listen 443 ", `listen 127.0.0.1:${setup.https} `)
    .replace("listen 80;", `listen 127.0.0.1:${setup.http};`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`);
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    `${user} worker_processes 1; pid ${folder}/pid; error_log ${folder}/errors;
    events {} http { access_log off; ${temporary.join(" ")}\n${config} }`,
  );
  // The program exits once its child listens.
  await runProgram([needs.nginx.file, "-c", file, "-e", join(folder, "errors")], folder);
  return () => runProgram([needs.nginx.file, "-c", file, "-e", join(folder, "errors"), "-s", "stop"], folder);
};

const startCaddy: StartProxy = async (setup) => {
  const { folder, cert, key } = setup;
  const file = join(folder, "Caddyfile");
  const first = "slipway.example.com {\n";
  const config = fillTemplate(readDocumentedConfig("caddy"), setup).replace(first, `${first}\ttls ${cert} ${key}\n`);
  writeFileSync(file, `{\n admin off\n https_port ${setup.https}\n http_port ${setup.http}\n}\n${config}`);
  await runProgram(
    ["caddy", "start", "--config", file, "--adapter", "caddyfile", "--pidfile", join(folder, "pid")],
    folder,
  );
  return async () => void process.kill(Number(readFileSync(join(folder, "pid"), "utf8")));
};

const testThroughProxy = async (start: StartProxy): Promise<void> => {
  using temp = tempDirectory();
  const [https, http] = await findFreePorts();
  const { cert, key } = await makeCertificate(temp.path, "proxy", "DNS:slipway.example.com,DNS:*.apps.example.com");
  const [name, apps] = [`slipway.example.com:${https}`, `apps.example.com:${https}`];
  await using world = await startAppWorld({
    apps: (port) => [{ slug: "mine", url: `http://localhost:${port}`, subdomain: true }],
    env: {
      SLIPWAY_ACCESS_URL: `https://${name}`,
      SLIPWAY_WILDCARD_ACCESS_URL: `*.${apps}`,
      SLIPWAY_TRUSTED_PROXIES: "127.0.0.1,::1",
    },
  });
  const upstream = world.server.url.host;
  const stop = await start({ folder: temp.path, cert, key, upstream, https, http });
  try {
    const ca = readFileSync(cert, "utf8");
    const tls = (host: string) => ({ ca, serverName: host.split(":")[0] as string });
    const request = (path: string, init: RequestInit = {}, host = name): Promise<Response> =>
      fetch(`https://127.0.0.1:${https}${path}`, {
        redirect: "manual",
        ...init,
        tls: tls(host),
        headers: { ...(init.headers as Record<string, string>), host },
      } as RequestInit);
    const addressLookups = spyOn(getContext(world.server).addresses, "of");
    const listAddresses = () => addressLookups.mock.results.map(({ value }) => value);

    // The session cookie is only for https, and only pages of the access URL may send requests that change something.
    const json = { "content-type": "application/json" };
    const body = JSON.stringify({ email: ADMIN.email, password: ADMIN.password });
    const signedIn = await request("/api/v2/users/login", { method: "POST", headers: json, body });
    expect([signedIn.status, signedIn.headers.getSetCookie()[0]]).toEqual([201, expect.stringContaining("; Secure")]);
    const cookie = (signedIn.headers.getSetCookie()[0] as string).split(";")[0] as string;
    const signOut = (origin: string) =>
      request("/api/v2/users/logout", { method: "POST", headers: { cookie, origin } }).then(({ status }) => status);
    expect([await signOut("https://evil.example"), await signOut(`https://${name}`)]).toEqual([403, 200]);
    expect((await request("/api/v2/buildinfo", {}, `evil.example:${https}`).catch(() => undefined))?.status).not.toBe(
      200,
    );
    const plain = await fetch(`http://127.0.0.1:${http}/x?y`, {
      redirect: "manual",
      headers: { host: "slipway.example.com" },
    });
    expect([301, 308]).toContain(plain.status);
    expect(plain.headers.get("location")).toMatch(/^https:\/\/slipway\.example\.com(:\d+)?\/x\?y$/);

    // The client address is the source address of the connection to the proxy, regardless of headers.
    addressLookups.mockClear();
    const argv = ["-sk", "--interface", "127.0.0.9", "-H", "X-Forwarded-For: 203.0.113.9", "--resolve"];
    const curl = [
      needs.curl.file,
      ...argv,
      `slipway.example.com:${https}:127.0.0.1`,
      `https://${name}/api/v2/buildinfo`,
    ];
    await runProgram(curl, temp.path);
    // A daemon or page may also make requests now, but the address that a header claims is never used.
    expect(listAddresses()).toContain("127.0.0.9");
    expect(listAddresses()).not.toContain("203.0.113.9");

    // A WebSocket and an event stream each receive a message while they are open.
    const token = { "Service-Session-Token": world.token };
    const { workspace } = world.shared;
    const events = (await request(`/api/v2/workspaces/${workspace.id}/watch`, { headers: token })).body?.getReader();
    const waitForEvent = async (expected: string): Promise<void> => {
      let text = "";
      while (!text.includes(expected)) {
        const { value, done: isDone } = (await events?.read()) ?? { value: undefined, done: true };
        if (isDone) throw new Error(`the events ended: ${text}`);
        text += new TextDecoder().decode(value);
      }
    };
    await waitForEvent("event: data");
    const socket = new WebSocket(`wss://127.0.0.1:${https}/api/v2/workspaceagents/${world.agent_id}/logs?follow=true`, {
      tls: tls(name),
      headers: { ...token, host: name },
    } as never);
    const lines: string[] = [];
    const received = new Promise<void>((resolve, reject) => {
      socket.onerror = () => reject(new Error("the socket was refused"));
      socket.onmessage = ({ data }) => {
        lines.push(String(data));
        if (String(data).includes("through the proxy")) resolve();
        else if (lines.length === 1) void append();
      };
    });
    const append = () =>
      request("/api/v2/workspaceagents/me/logs", {
        method: "PATCH",
        headers: { ...json, "Service-Session-Token": world.shared.token },
        body: JSON.stringify({ logs: [{ output: "through the proxy" }] }),
      });
    await received;
    socket.close();
    const ttlRequest = { method: "PUT", headers: { ...json, ...token }, body: '{"ttl_ms":7200000}' };
    expect((await request(`/api/v2/workspaces/${workspace.id}/ttl`, ttlRequest)).status).toBe(204);
    await waitForEvent('"ttl_ms":7200000');
    await events?.cancel();

    // The body is larger than a proxy's default limit. The JSON error shows that it reached the server.
    const large = {
      method: "POST",
      headers: { ...token, "content-type": "application/x-tar" },
      body: new Uint8Array(3e6),
    };
    expect((await request("/api/v2/files", large)).headers.get("content-type")).toStartWith("application/json");

    // An app on its own host, with its WebSocket.
    const host = `mine--dev--dev--ada.${apps}`;
    const echo = await request("/deep?x=1", { headers: token }, host);
    expect([echo.status, ((await echo.json()) as { path: string }).path]).toEqual([200, "/deep?x=1"]);
    const appSocket = new WebSocket(`wss://127.0.0.1:${https}/socket`, {
      tls: tls(host),
      headers: { ...token, host },
    } as never);
    const hello = await new Promise<string>((resolve, reject) => {
      appSocket.onmessage = ({ data }) => resolve(String(data));
      appSocket.onerror = () => reject(new Error("the app's socket was refused"));
    });
    expect(JSON.parse(hello).path).toBe("/socket");
    appSocket.close();
  } finally {
    await stop();
    rmSync(join(temp.path, "stderr"), { force: true });
  }
};

test("[OP-17] `doctor` reports a proxy that is not configured", async () => {
  using temp = tempDirectory();
  const doctorArgs = ["doctor", "--data-dir", join(temp.path, "data"), "--address", "127.0.0.1:0"];
  const withAccessUrl = [...doctorArgs, "--access-url", "https://slipway.example.com"];
  expect((await runVerb(withAccessUrl)).printed).toContain("a proxy that trusted_proxies does not list");
  expect((await runVerb([...withAccessUrl, "--trusted-proxies", "127.0.0.1"])).printed).not.toContain("does not list");
});

const tools = [needs.openssl, needs.curl];
testNeeding([needs.nginx, ...tools], "[OP-17] everything works behind nginx with the documented configuration", () =>
  testThroughProxy(startNginx),
);
if (Bun.which("caddy") !== null && tools.every(({ found }) => found)) {
  test("[OP-17] everything works behind Caddy with the documented configuration", () => testThroughProxy(startCaddy));
}
