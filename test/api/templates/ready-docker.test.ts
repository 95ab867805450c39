// The built-in Docker template: created once an engine responds.
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateExample } from "#schema/templates/template-version.ts";
import { type ApiError, Client } from "#src/client.ts";
import { FakeDocker } from "#test/support/docker/fake-docker.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { createWorkspace, openWorld } from "#test/support/workspaces.ts";

const createProgram = (folder: string): string => {
  const file = join(folder, "program");
  writeFileSync(file, Buffer.concat([Buffer.from("\x7fELF"), Buffer.alloc(14), Buffer.from([62, 0])]));
  return file;
};

const signIn = (serverUrl: URL): Promise<Client> => {
  const url = new URL(serverUrl);
  url.hostname = "127.0.0.1";
  return new Client(url).signIn(ADMIN.email, ADMIN.password);
};

const listTemplateNames = async (client: Client): Promise<string[]> =>
  (await client.get<Template[]>("/api/v2/templates")).map(({ name }) => name);

testInProcess(
  "[TP-29] the Docker template is created when an engine starts to respond, also if the server listens on all addresses",
  async () => {
    using directory = tempDirectory();
    const clock = new ManualClock();
    await using server = await startTestServer({
      clock,
      env: {
        SLIPWAY_ADDRESS: "0.0.0.0:0",
        SLIPWAY_DOCKER_HOST: `unix://${directory.path}/docker.sock`,
        SLIPWAY_AGENT_BINARY: createProgram(directory.path),
      },
    });
    const admin = await signIn(server.url);
    expect(await listTemplateNames(admin)).toEqual([]);
    await using engine = new FakeDocker(directory.path);
    clock.advance(15_000);
    await engine.awaitCall("GET /_ping");
    while ((await listTemplateNames(admin)).length === 0) clock.advance(100);
    expect(await listTemplateNames(admin)).toEqual(["docker"]);
  },
);

test("[TP-29][TP-22] the Docker template is created once at startup if the engine responds and a binary for containers exists", async () => {
  using directory = tempDirectory();
  await using engine = new FakeDocker(directory.path);
  const startAndList = async (env: Record<string, string>, isExpected = false): Promise<string[]> => {
    await using server = await startTestServer({
      directory: directory.path,
      env: { SLIPWAY_ADDRESS: "0.0.0.0:0", SLIPWAY_DOCKER_HOST: engine.host, ...env },
    });
    const admin = await signIn(server.url);
    const listTemplates = () => admin.get<Template[]>("/api/v2/templates");
    // In a cluster, the node may accept requests before it has created the template.
    if (isExpected) await until(async () => (await listTemplates()).length > 0);
    const templates = await listTemplates();
    if (isExpected) for (const { id } of templates) await admin.delete(`/api/v2/templates/${id}`);
    return templates.map(({ name, display_name }) => `${name}: ${display_name}`);
  };
  // The server copies its compiled program into containers. A server from source has none.
  if (!process.env.SLIPWAY_TEST_BINARY) expect(await startAndList({})).toEqual([]);
  const env = { SLIPWAY_AGENT_BINARY: createProgram(directory.path) };
  expect(await startAndList(env, true)).toEqual(["docker: Docker"]);
  expect(await startAndList(env)).toEqual([]);
});

test("[TP-29] [CF-18] if containers cannot reach the server, starters explain it and workspaces do not start", async () => {
  using directory = tempDirectory();
  await using engine = new FakeDocker(directory.path);
  const env = { SLIPWAY_DOCKER_HOST: engine.host, SLIPWAY_AGENT_BINARY: createProgram(directory.path) };
  await using world = await openWorld({ env });
  const { admin } = world;
  const problem =
    /Containers cannot reach the server, which listens only on 127\.0\.0\.1:\d+\. Set address to 0\.0\.0\.0/;
  expect(await listTemplateNames(admin)).toEqual(["local"]);
  const examples = await admin.get<TemplateExample[]>("/api/v2/templates/examples");
  expect(examples.find(({ id }) => id === "local")?.unavailable).toBe("");
  for (const example of examples.filter(({ provisioner }) => provisioner === "docker")) {
    expect(example.unavailable).toMatch(problem);
  }
  const resources = [{ name: "box", docker: { image: "debian:13" }, agents: [{ name: "main" }] }];
  const template = await makeTemplate(admin, JSON.stringify({ provisioner: "docker", resources }));
  expect(template.unavailable).toMatch(problem);
  const rejection = await createWorkspace(admin, template.id, "cut").catch((error: ApiError) => error.body);
  expect(rejection).toMatchObject({
    message: "Docker workspaces cannot start.",
    detail: expect.stringMatching(problem),
  });
});

test("[TP-29] without an engine, Docker starters say that none responds", async () => {
  await using world = await openWorld();
  const examples = await world.admin.get<TemplateExample[]>("/api/v2/templates/examples");
  expect(examples.find(({ id }) => id === "docker")?.unavailable).toContain("/nowhere/docker.sock");
});
