// Tokens: how they are compared, and that none is stored or logged.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isSameDigest, sha256 } from "#base/ids.ts";
import { configureLogging, resetLogging } from "#base/log.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { describeInProcess, testInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer, tempDirectory } from "#test/support/server.ts";
import { makeKey } from "#test/support/worker.ts";
import { awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";
import { corruptToken, createKinds, measureTiming, welch } from "./token-timing.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Files where secrets, or their hashes, may be compared with the language's operators, with the reason. */
const PLAIN_COMPARISONS: Record<string, string> = {
  "actors/agent/state.ts": "the same agent signing in again: both hashes are the server's own",
  "src/api/agents/yamux-socket.ts": "compares how often an agent's token was renewed, not the token",
};

testInProcess("[SC-5] input is compared with secrets by hash and in constant time, never with ===", () => {
  const comparison = /\b\w*(?:secret|token|hash|digest|signature|password)\w*\s*[!=]==\s*(?!\s|undefined|null|")/i;
  const offenders = ["src/api", "src/identity", "src/base", "actors", "src/wire"].flatMap((folder) =>
    [...new Bun.Glob("**/*.ts").scanSync({ cwd: join(ROOT, folder) })].flatMap((file) => {
      const path = `${folder}/${file}`;
      const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
      return lines.some((line) => comparison.test(line) && !/^\s*(\/\/|\*)/.test(line)) ? [path] : [];
    }),
  );
  expect(offenders.filter((path) => !(path in PLAIN_COMPARISONS))).toEqual([]);
});

testInProcess(
  "[SC-5] digests are compared completely: each wrong byte is rejected, and so are other lengths and invalid hex",
  () => {
    const right = sha256("a secret");
    expect(right).toBe(createHash("sha256").update("a secret").digest("hex"));
    expect(isSameDigest(right, sha256("a secret"))).toBe(true);
    for (let index = 0; index < right.length; index++) {
      const wrongDigit = right[index] === "0" ? "1" : "0";
      expect(isSameDigest(right, right.slice(0, index) + wrongDigit + right.slice(index + 1))).toBe(false);
    }
    for (const bad of ["", right.slice(2), `${right}00`, "zz"]) expect(isSameDigest(right, bad)).toBe(false);
    expect(isSameDigest("", "")).toBe(false);
  },
);

describeInProcess("the time of a refusal", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer();
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  test("[SC-5] tokens with an error at either end are rejected, in the code that the long form measures", async () => {
    for (const kind of await createKinds(server)) {
      expect(corruptToken(kind, "first")).not.toBe(corruptToken(kind, "last"));
      const { refused, calls, t } = await measureTiming(kind, 200);
      expect([kind.name, refused]).toEqual([kind.name, calls]);
      expect(Number.isFinite(t)).toBe(true);
      // This comes last, because the setup token is single-use: the valid one is accepted.
      expect([kind.name, await kind.isRejected(kind.right)]).toEqual([kind.name, false]);
    }
  });

  test("[SC-5] the measurement detects a difference, and reports none between equal samples", () => {
    const sample = (offset: number): number[] => Array.from({ length: 1000 }, (_, i) => ((i * 7919) % 1000) + offset);
    expect(welch(sample(0), sample(0))).toBe(0);
    expect(welch(sample(100), sample(0))).toBeGreaterThan(4);
    expect(welch(sample(0), sample(100))).toBeLessThan(-4);
  });
});

/** Returns every file below the directory with its content. */
const readFiles = (directory: string): { path: string; text: string }[] =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => ({ path, text: readFileSync(path, "latin1") }));

testInProcess(
  "[SC-6] no file or log line contains a token, except the record of a local workspace's daemon and its token file",
  async () => {
    using directory = tempDirectory();
    const lines: string[] = [];
    configureLogging({ level: "trace", format: "json", write: (line) => void lines.push(line) });
    const secrets = new Map<string, string>();
    const withoutAdmin = { SLIPWAY_ADMIN_EMAIL: "", SLIPWAY_ADMIN_USERNAME: "", SLIPWAY_ADMIN_PASSWORD: "" };
    const findSecrets = (text: string): string[] =>
      [...secrets].flatMap(([name, secret]) => (text.includes(secret) ? [name] : []));
    let filesWhileRunning: { path: string; text: string }[];
    {
      await using server = await startTestServer({ directory: directory.path, env: withoutAdmin });
      const anonymous = new Client(server.url);
      const setup_token = new URL((await getContext(server).setupUrl()) ?? "").searchParams.get("token") as string;
      secrets.set("setup token", setup_token);
      await anonymous.fetch("POST", "/api/v2/users/first", { ...ADMIN, setup_token: `${setup_token}x` });
      await anonymous.post("/api/v2/users/first", { ...ADMIN, setup_token });
      const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
      secrets.set("session", getSecretHalf(admin.token as string));
      const { key: token } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "ci" });
      secrets.set("API token", getSecretHalf(token));
      secrets.set("browser's key", getSecretHalf((await admin.post<{ key: string }>("/api/v2/users/me/keys")).key));
      const workerKey = (await makeKey(admin)).key;
      secrets.set("provisioner key", getSecretHalf(workerKey));
      // Valid and invalid uses in which the server might log a request's URL.
      const serve = "/api/v2/organizations/default/provisionerdaemons/serve";
      for (const credential of [token, workerKey, `${token}x`, `${workerKey}x`, setup_token]) {
        await anonymous.withToken(credential).fetch("GET", serve);
        await anonymous.fetch("GET", `/api/v2/users/me?service_session_token=${credential}`);
        await anonymous.fetch("GET", `/api/v2/nothing/${credential}`);
      }
      const templates = await admin.get<{ id: string; name: string }[]>("/api/v2/templates");
      const local = templates.find(({ name }) => name === "local")?.id as string;
      const { id } = await createWorkspace(admin, local);
      const findAgent = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents?.[0];
      await awaitWorkspace(admin, id, (workspace) => findAgent(workspace)?.lifecycle_state === "ready");
      const record = join(server.directory, "workspaces", id, "daemon.json");
      const { token: agent } = JSON.parse(readFileSync(record, "utf8")) as { token: string };
      secrets.set("agent token", agent);
      const tokenFile = join(server.directory, "workspaces", id, "token");
      for (const file of [record, tokenFile]) expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(statSync(join(server.directory, "workspaces")).mode & 0o777).toBe(0o700);
      filesWhileRunning = readFiles(directory.path).filter(({ path }) => path !== record && path !== tokenFile);
      await createBuild(admin, id, "delete");
      await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
    }
    resetLogging();
    expect(filesWhileRunning.some(({ path }) => path.endsWith("slipway.db-wal"))).toBe(true);
    const texts = [...filesWhileRunning, ...readFiles(directory.path), { path: "log", text: lines.join("") }];
    expect(texts.flatMap(({ path, text }) => findSecrets(text).map((name) => `${name} in ${path}`))).toEqual([]);
    expect([...secrets.values()].filter(({ length }) => length < 20)).toEqual([]);
  },
);

/** Half of a token is also secret; its ID is not. */
const getSecretHalf = (token: string): string => token.split("-")[1] as string;
