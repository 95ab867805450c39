// The support archive, and settings that are reloaded while the server runs.
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { configureLogging, log, resetLogging } from "#base/log.ts";
import { redact } from "#base/redact.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ADMIN, readAnnouncedUrl, startTestServer, tempDirectory } from "#test/support/server.ts";
import { newPerson } from "../api/users/people.ts";
import { command } from "../crash/server.ts";
import { runVerb } from "./run-verb.ts";

const SECRETS = {
  key: "LNwE1w5Q6U-iYJQv1Jh7iDPXBV2bZCprO",
  provider: "sk-proj-abcdefghijklmnop1234",
  jwt: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
  password: "correct-horse-battery",
  inUrl: "hunter2hunter2",
  person: "ada@example.com",
};

const LOG = [
  `{"level":"error","message":"GET /x Authorization: Bearer ${SECRETS.key} failed"}`,
  `{"level":"error","error":{"message":"provider said {\\"api_key\\":\\"${SECRETS.provider}\\"}"}}`,
  `2026-11-21 WARN git: https://user:${SECRETS.inUrl}@git.example.com/x cannot be fetched`,
  `setup link /setup?token=${SECRETS.jwt}&next=1 password=${SECRETS.password} of ${SECRETS.person}`,
  '{"level":"info","area":"db","message":"opened","path":"/var/lib/slipway"}',
].join("\n");

test("[OP-12] removes possible secrets and personal names from log lines, and keeps the rest", () => {
  const redacted = redact(LOG);
  for (const secret of Object.values(SECRETS)) if (secret !== SECRETS.key) expect(redacted).not.toContain(secret);
  expect(redacted).not.toContain("iYJQv1Jh7iDPXBV2bZCprO");
  expect(redacted).toContain('{"level":"info","area":"db","message":"opened","path":"/var/lib/slipway"}');
  expect(redacted).toContain("git.example.com/x cannot be fetched");
  expect(redacted).toContain("next=1");
});

test("[OP-12] removes the secrets of other services and shells", () => {
  const secrets = [
    "github_pat_11ABCDEFG0_abcdefghijklmnop",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz12345",
    "AKIAIOSFODNN7EXAMPLE",
    "gsk_abcdefghijklmnop1234",
    "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
  ];
  const lines = [
    ...secrets.slice(0, -1).map((secret) => `the provider has refused ${secret}`),
    `agent token ${secrets.at(-1)} belongs to no agent`,
    "serve --admin-password hidden-one --data-dir ./data",
    'Cookie: theme=dark; service_session_token=hidden-one; app="hidden-one"'.replaceAll('"', ""),
    '{"cookie":"a=hidden-one; b=hidden-one","next":"kept"}',
  ];
  const redacted = redact(lines.join("\n"));
  for (const secret of [...secrets, "hidden-one"]) expect(redacted).not.toContain(secret);
  for (const kept of ["--data-dir ./data", '"next":"kept"', "belongs to no agent"]) expect(redacted).toContain(kept);
});

test("[OP-12] [OP-9] prints errors about a file or a damaged database as a sentence without a stack trace", async () => {
  using temp = tempDirectory();
  const pathOf = (name: string): string => join(temp.path, name);
  writeFileSync(pathOf("there.tar"), "mine");
  writeFileSync(pathOf("slipway.db"), "no database at all, whatever its name may be");
  for (const [argv, expected] of [
    [["support-bundle", pathOf("there.tar")], "EEXIST: file already exists"],
    [["migrate"], "the database cannot be used: file is not a database"],
  ] as const) {
    const child = Bun.spawn([...command(), ...argv, "--data-dir", temp.path], { stdout: "ignore", stderr: "pipe" });
    const [errors, code] = [await child.stderr.text(), await child.exited];
    expect([code, errors.split("\n").length]).toEqual([1, 2]);
    expect(errors).toContain(expected);
  }
  expect(readFileSync(pathOf("there.tar"), "utf8")).toBe("mine");
});

test("[OP-12] a support bundle is readable only by its creator and contains version, settings, findings and log, but no secrets", async () => {
  using temp = tempDirectory();
  const data = join(temp.path, "data");
  const dataDir = ["--data-dir", data];
  const { printed } = await runVerb(["offline", "setup", "root", "--email", "root@example.com", "--json", ...dataDir]);
  const { password } = JSON.parse(printed) as { password: string };
  writeFileSync(join(temp.path, "slipway.log"), LOG);
  const file = join(temp.path, "support.tar");
  const settings = ["--admin-password", SECRETS.password, "--admin-email", SECRETS.person, "--admin-username", "ada"];
  const argv = ["support-bundle", file, "--log-file", join(temp.path, "slipway.log"), ...settings, ...dataDir];
  expect((await runVerb(argv)).code).toBe(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const bytes = await Bun.file(file).text();
  for (const secret of [...Object.values(SECRETS).slice(1), password]) expect(bytes).not.toContain(secret);
  const files = await new Bun.Archive(await Bun.file(file).bytes()).files();
  expect([...files.keys()].sort()).toEqual(["about.json", "database.json", "doctor.json", "log.txt", "settings.json"]);
  const { tables } = JSON.parse((await files.get("database.json")?.text()) ?? "") as { tables: { name: string }[] };
  expect(tables.map(({ name }) => name)).toContain("users");
  expect((await runVerb(["support-bundle", ...dataDir])).code).toBe(2);
});

test("[CV-40] a workspace's bundle is written into the current folder, even if its name contains other paths", async () => {
  using temp = tempDirectory();
  const agents = [{ id: "a", name: "../../agent\u001b[1m" }];
  const workspace = { id: "w", name: "../../../outside", latest_build: { id: "b", resources: [{ agents }] } };
  await using server = serveJson((path) => (path.includes("/workspace/") ? workspace : []));
  const argv = ["support", "bundle", "dev", "--yes", "--url", server.url.origin, "--token", "x"];
  const child = Bun.spawn([...command(), ...argv], { cwd: temp.path, stdout: "ignore", stderr: "pipe" });
  expect([await child.stderr.text(), await child.exited]).toEqual(["", 0]);
  expect(readdirSync(temp.path)).toEqual(["slipway-support-outside.zip"]);
  const files = unzipSync(readFileSync(join(temp.path, "slipway-support-outside.zip")));
  expect(Object.keys(files)).toContain("agent-agent_1m.log");
});

const serveJson = (respond: (path: string) => unknown) => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => Response.json(respond(new URL(url).pathname)),
  });
  return { url: server.url, [Symbol.asyncDispose]: () => server.stop(true) };
};

test("[OP-13] SIGHUP reloads the settings, such as the log level; an error is reported and changes nothing", async () => {
  using temp = tempDirectory();
  const file = join(temp.path, "slipway.yaml");
  const writeSettings = (level: string, otherSettings = ""): void =>
    writeFileSync(file, `log_level: ${level}\nlog_format: json\n${otherSettings}`);
  writeSettings("error");
  const data = join(temp.path, "data");
  const child = Bun.spawn([...command(), "serve", "--config", file, "--data-dir", data, "--address", "127.0.0.1:0"], {
    env: { PATH: Bun.env.PATH ?? "", HOME: temp.path },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const url = await readAnnouncedUrl(child.stdout);
  const lines = readLines(child.stderr);
  writeSettings("info,trace=debug");
  child.kill("SIGHUP");
  expect(await lines.until((line) => line.includes("were reloaded"))).toMatchObject({
    level: "info",
    log_level: "info,trace=debug",
  });
  await fetch(new URL("/api/v2/buildinfo", url), { headers: { "x-request-id": "r-7" } });
  const request = await lines.until((line) => line.includes("r-7") && line.includes('"status"'));
  expect(request).toMatchObject({ level: "debug", area: "trace", message: "request", status: 200 });
  writeSettings("info", "chat_slots: 7\naccess_url: https://x.example.com\n");
  child.kill("SIGHUP");
  expect(await lines.until((line) => line.includes("were reloaded"))).toMatchObject({
    with_the_next_start: ["access_url", "chat_slots"],
  });
  writeSettings("loud");
  child.kill("SIGHUP");
  expect(await lines.until((line) => line.includes("the previous ones stay in effect"))).toMatchObject({
    level: "error",
    error: expect.stringContaining("log_level"),
  });
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

const readLines = (stream: ReadableStream<Uint8Array>) => {
  const reader = stream
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  let buffer = "";
  return {
    /** Resolves with the first matching line, as JSON. */
    async until(matches: (line: string) => boolean): Promise<unknown> {
      for (;;) {
        const lines = buffer.split("\n");
        const found = lines.slice(0, -1).findIndex(matches);
        if (found >= 0) {
          buffer = lines.slice(found + 1).join("\n");
          return JSON.parse(lines[found] as string);
        }
        const { value, done } = await reader.read();
        if (done) throw new Error(`the output ended: ${buffer}`);
        buffer += value;
      }
    },
  };
};

testInProcess(
  "[OP-12] [AD-11] an owner downloads a running server's bundle, without secrets, with the API or the command",
  async () => {
    using temp = tempDirectory();
    const canaries = {
      hook: "canary-hook-secret-0123456789abcdef",
      mail: "canary-mail-password-77",
      key: "canary-api-key-0123456789",
      linked: "canary-client-secret-55",
    };
    const github = { id: "github", type: "github", client_id: "c", client_secret: canaries.linked };
    await using server = await startTestServer({
      env: {
        SLIPWAY_HOOK_URL: "http://127.0.0.1:1/hooks",
        SLIPWAY_HOOK_SECRET: canaries.hook,
        SLIPWAY_SMTP_PASSWORD: canaries.mail,
        SLIPWAY_SMTP_USERNAME: "mailer",
        SLIPWAY_SMTP_HOST: "127.0.0.1",
        SLIPWAY_SMTP_FROM: "slipway@example.com",
        SLIPWAY_EXTERNAL_AUTH: JSON.stringify([github]),
      },
    });
    configureLogging({ level: "info", format: "text", write: () => {} });
    try {
      const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
      const token = owner.token as string;
      const provider = { provider: "openai", display_name: "Open", api_key: canaries.key };
      await owner.post("/api/v2/chats/providers", provider);
      log("http").error("GET /x failed", {
        authorization: `Bearer ${token}`,
        by: "ada@example.com",
        code: canaries.key,
      });
      const file = join(temp.path, "support.tar");
      const serverFlags = ["--url", server.url.origin, "--token", token];
      const created = await runVerb(["support-bundle", file, ...serverFlags]);
      expect(created).toMatchObject({ code: 0, errors: "" });
      expect(statSync(file).mode & 0o777).toBe(0o600);
      const files = await new Bun.Archive(await Bun.file(file).bytes()).files();
      const names = ["about.json", "database.json", "figures.json", "health.json", "log.txt", "settings.json"];
      expect([...files.keys()].sort()).toEqual(names);
      const text = readFileSync(file, "utf8");
      const secrets = [...Object.values(canaries), "canary", ADMIN.password, token.slice(11), "ada@example.com"];
      for (const secret of secrets) expect([secret, text.includes(secret)]).toEqual([secret, false]);
      expect(await files.get("log.txt")?.text()).toContain("GET /x failed");
      expect(await files.get("health.json")?.text()).toContain('"findings"');
      expect(await files.get("settings.json")?.text()).toContain("smtp_host");
      const secondBundle = await runVerb(["support-bundle", file, ...serverFlags]);
      expect([secondBundle.code, secondBundle.errors]).toEqual([1, expect.stringContaining("EEXIST")]);
      const response = await owner.fetch("GET", "/api/v2/deployment/support-bundle");
      expect(response.headers.get("content-type")).toBe("application/x-tar");
      expect(response.headers.get("content-disposition")).toContain("attachment");
      const member = (await newPerson(owner, "mia")).client;
      const refused = await runVerb([
        "support-bundle",
        join(temp.path, "b.tar"),
        "--url",
        server.url.origin,
        "--token",
        member.token as string,
      ]);
      expect([refused.code, existsSync(join(temp.path, "b.tar"))]).toEqual([1, false]);
    } finally {
      resetLogging();
    }
  },
);
