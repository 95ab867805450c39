// Imports that fail, wait, are canceled or are interrupted, and the built-in template of a fresh install.

import { describe, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateParameter, TemplateVariable, TemplateVersion } from "#schema/templates/template-version.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { ADMIN, startTestServer, type TestServer, tempDirectory } from "#test/support/server.ts";
import {
  ECHO,
  followImport,
  importVersion,
  makeTemplate,
  sendFile,
  uniqueText,
  uploadFiles,
} from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

const signIn = (server: TestServer): Promise<Client> => new Client(server.url).signIn(ADMIN.email, ADMIN.password);
const VERSIONS = "/api/v2/organizations/default/templateversions";
const getVersion = (client: Client, id: string) => client.get<TemplateVersion>(`/api/v2/templateversions/${id}`);

const server = await forFile(startTestServer());
const admin = await signIn(server);

/** Occupies every slot of each node's queue until released, after waiting for jobs of earlier tests. */
const occupyQueue = async ({ contexts }: TestServer): Promise<Disposable & { release(): void }> => {
  const gate = Promise.withResolvers<void>();
  for (const { jobs, config } of contexts) {
    const awaitEmptyQueue = () => until(() => jobs.position("").queue_size === 0);
    await awaitEmptyQueue();
    for (let i = 0; i < config.provisioner_slots; i++) {
      jobs.submit({ id: uuid(), created_at: 0, urgency: "person", run: () => gate.promise });
    }
    await awaitEmptyQueue();
  }
  const release = (): void => gate.resolve();
  return { release, [Symbol.dispose]: release };
};

describe("failures", () => {
  test("[TP-8] an invalid manifest fails the job with file, line and reason; the log has all errors", async () => {
    const yaml = `${ECHO}        directory: /{{ unknown }}\n        scripts:\n          - display_name: s\n            script: "true"\n            cron: never\n`;
    const { job, id } = await importVersion(admin, { "top/template.yml": yaml, "top/README.md": "x" });
    expect(job.status).toBe("failed");
    expect(job.error).toBe(
      "template.yml line 6: resources.0.agents.0.directory: {{ unknown }} is not known; write \\{{ for a plain {{ (and 1 more, see the log)",
    );
    expect(job.error_code).toBeUndefined();
    const { lines, code } = await followImport(admin, id);
    expect(code).toBe(1000);
    expect(lines.filter(({ log_level }) => log_level === "error")).toHaveLength(2);
    const response = await admin.fetch("GET", `/api/v2/templateversions/${id}/rich-parameters`);
    expect(response.status).toBe(400);
  });

  test.each([
    ["no template.yaml", { "main.py": "x" }, "there is no template.yaml at the top of the archive, and no *.tf"],
    [
      "a path outside of the archive",
      { "../x": "x", "template.yaml": ECHO },
      'the name "../x" in the archive leads out of it',
    ],
  ])("[TP-5] rejects an archive with %s", async (_, files, reason) => {
    expect((await importVersion(admin, files)).job).toMatchObject({ status: "failed", error: reason });
  });

  test("[TP-7] rejects bytes that are not an archive", async () => {
    for (const [type, reason] of [
      ["application/zip", "the file is not a zip archive"],
      ["application/x-tar", "the tar archive is damaged"],
    ] as const) {
      const { hash } = (await (await sendFile(admin, uniqueText().repeat(30), type)).json()) as { hash: string };
      const created = await admin.post<TemplateVersion>(VERSIONS, { file_id: hash });
      await followImport(admin, created.id);
      expect((await getVersion(admin, created.id)).job).toMatchObject({ status: "failed", error: reason });
    }
  });

  test("[TP-15] a variable without a value fails the job with a code; responses never contain secret values", async () => {
    const yaml = `${uniqueText()}${ECHO}variables:\n  - {name: region, description: Where}\n  - {name: secret, sensitive: true, default: hidden-default}\n  - {name: count, type: number, default: 1}\n`;
    const failed = await importVersion(admin, yaml);
    expect(failed.job).toMatchObject({
      status: "failed",
      error_code: "REQUIRED_TEMPLATE_VARIABLES",
      error: "variable region: a value is required",
    });
    const listVariables = (id: string) => admin.get<TemplateVariable[]>(`/api/v2/templateversions/${id}/variables`);
    expect((await listVariables(failed.id)).map(({ name, required }) => [name, required])).toEqual([
      ["region", true],
      ["secret", false],
      ["count", false],
    ]);
    const user_variable_values = [
      { name: "region", value: "eu" },
      { name: "secret", value: "hidden-value" },
    ];
    const validVersion = await importVersion(admin, yaml, { user_variable_values });
    expect(validVersion.job.status).toBe("succeeded");
    const variableList = await listVariables(validVersion.id);
    expect(variableList.map(({ value }) => value)).toEqual(["eu", "", "1"]);
    expect(JSON.stringify(variableList)).not.toContain("hidden");
    const invalidVersion = await importVersion(admin, yaml, {
      user_variable_values: [...user_variable_values, { name: "count", value: "x" }],
    });
    expect(invalidVersion.job.error).toBe("variable count: must be a number in digits, such as 5 or -0.5");
  });

  test("[TP-13] a request needs exactly one source, an existing template and a valid name", async () => {
    const file_id = await uploadFiles(admin, { "template.yaml": ECHO });
    const getStatus = async (body: unknown) => (await admin.fetch("POST", VERSIONS, body as never)).status;
    expect(await getStatus({})).toBe(400);
    expect(await getStatus({ file_id, example_id: "local" })).toBe(400);
    expect(await getStatus({ file_id: uuid() })).toBe(400);
    expect(await getStatus({ file_id: "x" })).toBe(400);
    expect(await getStatus({ example_id: "nothing" })).toBe(400);
    expect(await getStatus({ file_id, template_id: uuid() })).toBe(404);
    expect(await getStatus({ file_id, name: "a b" })).toBe(400);
    expect(
      await getStatus({
        file_id,
        user_variable_values: [
          { name: "a", value: "1" },
          { name: "a", value: "2" },
        ],
      }),
    ).toBe(400);
    expect(await getStatus({ file_id, name: "" })).toBe(201);
    expect(await getStatus({ example_id: "local" })).toBe(201);
  });
});

describe("waiting and canceling", () => {
  testInProcess("[TP-14] a waiting import has a queue position, and never runs once it is canceled", async () => {
    // Versions of one template wait in one queue, regardless of the number of nodes.
    const { id: template_id } = await makeTemplate(admin);
    using slots = await occupyQueue(server);
    const file_id = await uploadFiles(admin, { "template.yaml": uniqueText() + ECHO });
    const first = await admin.post<TemplateVersion>(VERSIONS, { file_id, template_id });
    const second = await admin.post<TemplateVersion>(VERSIONS, { file_id, template_id });
    expect([first.job.status, second.job.status]).toEqual(["pending", "pending"]);
    // In a cluster, the template's node publishes its queue.
    await until(async () => (await getVersion(admin, second.id)).job.queue_position === 2);
    expect((await getVersion(admin, first.id)).job).toMatchObject({ status: "pending", queue_position: 1 });
    expect((await getVersion(admin, second.id)).job).toMatchObject({ status: "pending", queue_size: 2 });
    const versionWithoutTemplate = await admin.post<TemplateVersion>(VERSIONS, { file_id });
    const earlyResponse = await admin.fetch("POST", "/api/v2/organizations/default/templates", {
      name: "early",
      template_version_id: versionWithoutTemplate.id,
    } as never);
    expect(earlyResponse.status).toBe(412);
    expect((await admin.fetch("GET", `/api/v2/templateversions/${first.id}/presets`)).status).toBe(412);
    await admin.patch(`/api/v2/templateversions/${first.id}/cancel`);
    expect((await getVersion(admin, first.id)).job.status).toBe("canceled");
    expect((await followImport(admin, first.id)).code).toBe(1000);
    expect((await admin.fetch("PATCH", `/api/v2/templateversions/${first.id}/cancel`)).status).toBe(412);
    slots.release();
    await followImport(admin, second.id);
    expect((await getVersion(admin, second.id)).job.status).toBe("succeeded");
    expect((await getVersion(admin, first.id)).job.status).toBe("canceled");
  });

  test("[TP-14] an import without a matching worker waits, and says that no worker matches", async () => {
    const file_id = await uploadFiles(admin, { "template.yaml": ECHO });
    const { id } = await admin.post<TemplateVersion>(VERSIONS, { file_id, tags: { pool: "gpu" } });
    const version = await getVersion(admin, id);
    expect(version.job).toMatchObject({ status: "pending", available_workers: [] });
    expect(version.matched_provisioners).toMatchObject({ count: 0 });
    await admin.patch(`/api/v2/templateversions/${id}/cancel`);
  });
});

testInProcess("[TP-16] an import that a server stop interrupted completes after the next start", async () => {
  using directory = tempDirectory();
  let id = "";
  {
    await using first = await startTestServer({ directory: directory.path });
    const client = await signIn(first);
    using slots = await occupyQueue(first);
    const file_id = await uploadFiles(client, { "template.yaml": ECHO });
    id = (await client.post<TemplateVersion>(VERSIONS, { file_id })).id;
    // Frees the slots so that the stop can complete. The import does not start.
    const stopped = Promise.all(first.contexts.map(({ jobs }) => jobs.stop()));
    slots.release();
    await stopped;
    expect((await getVersion(client, id)).job.status).toBe("pending");
  }
  await using second = await startTestServer({ directory: directory.path });
  const client = await signIn(second);
  expect((await followImport(client, id)).lines.length).toBeGreaterThan(0);
  expect((await getVersion(client, id)).job.status).toBe("succeeded");
});

describe("the starter template", () => {
  const test = testSingleServer("local");

  test("[TP-21] a fresh install has `local` with an editable startup script", async () => {
    const template = await admin.get<Template>("/api/v2/organizations/default/templates/local");
    expect(template).toMatchObject({ provisioner: "local", display_name: "Local" });
    const version = await getVersion(admin, template.active_version_id);
    expect(version.job.status).toBe("succeeded");
    expect(version.readme).toStartWith("# Local");
    const [parameter] = await admin.get<TemplateParameter[]>(
      `/api/v2/templateversions/${template.active_version_id}/rich-parameters`,
    );
    expect(parameter).toMatchObject({ name: "startup_script", mutable: true, form_type: "textarea", required: false });
  });

  test("[TP-22] is created only at the first start, even if it is deleted", async () => {
    using directory = tempDirectory();
    const startAndList = async (): Promise<string[]> => {
      await using restarted = await startTestServer({ directory: directory.path });
      const client = await signIn(restarted);
      const list = await client.get<Template[]>("/api/v2/templates");
      const versions = await client
        .get<TemplateVersion[]>(`/api/v2/templates/${list[0]?.id ?? uuid()}/versions`)
        .catch(() => []);
      if (list.length > 0 && isDeleting) await client.delete(`/api/v2/templates/${list[0]?.id}`);
      return list.map(({ name }) => `${name} ${versions.length}`);
    };
    let isDeleting = false;
    expect(await startAndList()).toEqual(["local 1"]);
    isDeleting = true;
    expect(await startAndList()).toEqual(["local 1"]);
    expect(await startAndList()).toEqual([]);
  });

  test("[TP-21] is created off loopback and behind a proxy only if the setting allows it", async () => {
    const startAndList = async (env: Record<string, string>): Promise<string[]> => {
      await using started = await startTestServer({ env: { SLIPWAY_ADDRESS: "0.0.0.0:0", ...env } });
      const local = new URL(started.url);
      local.hostname = "127.0.0.1";
      const client = await new Client(local).signIn(ADMIN.email, ADMIN.password);
      return (await client.get<Template[]>("/api/v2/templates")).map(({ name }) => name);
    };
    expect(await startAndList({})).toEqual([]);
    const behindProxy = { SLIPWAY_ADDRESS: "127.0.0.1:0", SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" };
    expect(await startAndList({ ...behindProxy, SLIPWAY_ACCESS_URL: "https://slipway.example.com" })).toEqual([]);
    expect(await startAndList({ ...behindProxy, SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" })).toEqual([]);
    expect(await startAndList({ SLIPWAY_ALLOW_LOCAL_PROVISIONER_OFF_LOOPBACK: "true" })).toEqual(["local"]);
  });
});
