// Nodes with uploads in a bucket: stories through the public API, and conditions that prevent their start.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { UsageError } from "#base/usage-error.ts";
import { examine } from "#domain/health/checks.ts";
import { Client } from "#src/client.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { BUCKET, SECRET_KEY, startObjectStore } from "#test/support/cluster/object-store.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { usesPostgres } from "#test/support/postgres-server.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { makeTemplate, sendFile } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

const load = (env: Record<string, string>) => loadConfig({ argv: [], env, readFile: () => "" });
const toFlags = (settings: Record<string, string>): string[] =>
  Object.entries(settings).map(
    ([name, value]) => `--${name.slice("SLIPWAY_".length).toLowerCase().replaceAll("_", "-")}=${value}`,
  );

testNeeding(
  [needs.postgres],
  "[CL-33] a template that was uploaded to one node is built by the next one, from the bucket",
  async () => {
    await using store = startObjectStore();
    await using cluster = await startCluster();
    const env = store.settings;
    const firstNode = await cluster.start(1, { env });
    const secondNode = await cluster.start(2, { env });
    const client = await new Client(secondNode.url).signIn(ADMIN.email, ADMIN.password);
    const template = await makeTemplate(client);
    const sent = await sendFile(client, new Uint8Array(3_000_000).fill(5), "application/x-tar");
    const { hash: id } = (await sent.json()) as { hash: string };
    const objectCount = store.objects.size;
    expect(objectCount).toBeGreaterThanOrEqual(2);
    firstNode.signal("SIGKILL");
    await until(async () => (await cluster.active().catch(() => undefined))?.id === secondNode.id, {
      what: "the second node to be active",
    });
    const workspace = await client.post<{ id: string }>("/api/v2/users/me/workspaces", {
      name: "first",
      template_id: template.id,
    });
    await until(async () => {
      const { latest_build } = await client.get<{ latest_build: { job: { status: string } } }>(
        `/api/v2/workspaces/${workspace.id}`,
      );
      return latest_build.job.status === "succeeded";
    });
    const response = await client.fetch("GET", `/api/v2/files/${id}`);
    expect((await response.bytes()).length).toBe(3_000_000);
    // The store is unavailable for a while: requests that need it are rejected, everything else continues.
    store.inject(() => store.toErrorResponse(503, "SlowDown"));
    const refused = await sendFile(client, new Uint8Array(1000).fill(6), "application/x-tar");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "10"]);
    expect((await client.get<{ username: string }>("/api/v2/users/me")).username).toBe(ADMIN.username);
    store.inject(undefined);
    expect((await sendFile(client, new Uint8Array(1000).fill(6), "application/x-tar")).status).toBe(201);
    // Without the bucket, no node starts any more.
    await expect(cluster.start(3)).rejects.toThrow("uploads of this cluster are in object storage: set s3_bucket");
    const secrets = [firstNode, secondNode].map((node) => node.output()).join("");
    expect(secrets).not.toContain(SECRET_KEY);
    expect(secrets).not.toMatch(/X-Amz-Signature/);
    const shown = JSON.stringify(await client.get("/api/v2/deployment/config"));
    expect(shown).toContain(BUCKET);
    expect(shown).not.toContain(SECRET_KEY);
  },
);

testNeeding(
  [needs.postgres],
  "[CL-34] a node does not start with an unusable bucket, or with another one than before",
  async () => {
    await using store = startObjectStore();
    await using otherStore = startObjectStore();
    await using cluster = await startCluster();
    const getStartError = async (overrides: Record<string, string>): Promise<string> => {
      const error = await cluster
        .start(1, { env: { ...store.settings, ...overrides } })
        .catch((reason: Error) => reason);
      return error instanceof Error ? error.message : "it has started";
    };
    expect(await getStartError({ SLIPWAY_S3_SECRET_KEY: "wrong" })).toContain(
      `the bucket uploads at ${store.url} cannot be used: s3_secret_key does not belong to s3_access_key`,
    );
    expect(await getStartError({ SLIPWAY_S3_BUCKET: "elsewhere" })).toContain(
      "there is no such bucket (404 NoSuchBucket)",
    );
    expect(await getStartError({ SLIPWAY_S3_ENDPOINT: "http://127.0.0.1:1" })).toContain("it does not answer");
    const node = await cluster.start(1, { env: store.settings });
    await makeTemplate(await new Client(node.url).signIn(ADMIN.email, ADMIN.password));
    const otherBucketError = await cluster.start(2, { env: otherStore.settings }).catch((reason: Error) => reason);
    expect(String(otherBucketError)).toContain(
      "has none of the uploads of this cluster: it is another one, or has lost them",
    );
    const examineUploads = async (settings: Record<string, string>) => {
      const env = { SLIPWAY_DATABASE_URL: cluster.database.url, ...settings, SLIPWAY_DOCKER_HOST: "unix:///nowhere" };
      const findings = await examine(load(env).config, systemClock, true, {});
      return findings.find(({ name }) => name === "uploads");
    };
    expect(await examineUploads(store.settings)).toMatchObject({ status: "ok" });
    expect(await examineUploads(otherStore.settings)).toMatchObject({ status: "wrong" });
    expect(await examineUploads({})).toMatchObject({
      status: "wrong",
      detail: expect.stringContaining("set s3_bucket"),
    });
    expect(await examineUploads({ ...store.settings, SLIPWAY_S3_SECRET_KEY: "wrong" })).toMatchObject({
      status: "wrong",
    });
  },
);

testNeeding(
  [needs.postgres, { found: !usesPostgres, reason: "needs servers on SQLite", file: "" }],
  "[CL-36] a migration moves uploads into the bucket, and back out of it",
  async () => {
    using temp = tempDirectory();
    using back = tempDirectory();
    await using store = startObjectStore();
    let id = "";
    {
      await using server = await startTestServer({ directory: temp.path });
      const client = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
      const sent = await sendFile(client, new Uint8Array(2_000_000).fill(9), "application/x-tar");
      id = ((await sent.json()) as { hash: string }).hash;
    }
    const database = await createDatabase();
    const move = (to: string, directory: string, settings: Record<string, string>) =>
      runVerb([
        "migrate",
        "--to",
        to,
        `--data-dir=${directory}`,
        `--database-url=${database.url}`,
        ...toFlags(settings),
      ]);
    const wrong = await move("postgres", temp.path, { ...store.settings, SLIPWAY_S3_BUCKET: "elsewhere" });
    expect([wrong.code, wrong.errors]).toEqual([1, expect.stringContaining("there is no such bucket")]);
    store.inject((request) =>
      request.method === "PUT" && store.requestLog.length > 5 ? store.toErrorResponse(500, "") : undefined,
    );
    const broken = await move("postgres", temp.path, store.settings);
    expect([broken.code, broken.errors]).toEqual([1, expect.stringContaining("cannot be used: it refuses (500)")]);
    store.inject(undefined);
    const moved = await move("postgres", temp.path, store.settings);
    expect([moved.code, moved.errors]).toEqual([0, ""]);
    // Without the bucket, nothing is dropped silently.
    const without = await move("sqlite", back.path, {});
    expect([without.code, without.errors]).toEqual([1, expect.stringContaining("are in object storage")]);
    expect((await move("sqlite", back.path, store.settings)).code).toBe(0);
    await Bun.write(`${back.path}/encryption.key`, Bun.file(`${temp.path}/encryption.key`));
    await using server = await startTestServer({ directory: back.path });
    const client = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    expect((await (await client.fetch("GET", `/api/v2/files/${id}`)).bytes()).length).toBe(2_000_000);
    await database.remove();
  },
);

test("[CL-34] rejects incomplete settings, and a bucket combined with one server's data directory", () => {
  const settings = {
    SLIPWAY_S3_BUCKET: "uploads",
    SLIPWAY_S3_ACCESS_KEY: "key",
    SLIPWAY_S3_SECRET_KEY: "secret",
    SLIPWAY_DATABASE_URL: "postgres://a:b@c/d",
  };
  expect(load(settings).config.s3_prefix).toBe("slipway/");
  for (const name of Object.keys(settings)) {
    const { [name as keyof typeof settings]: _, ...rest } = settings;
    expect(() => load(rest)).toThrow(UsageError);
  }
  const { SLIPWAY_DATABASE_URL: _, ...withoutDatabase } = settings;
  expect(() => load(withoutDatabase)).toThrow("a single server stores uploads in its data directory");
  expect(() => load({ ...settings, SLIPWAY_S3_PREFIX: "no-slash" })).toThrow(UsageError);
});
