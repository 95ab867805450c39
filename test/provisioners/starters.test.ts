// The starter templates. Those for the server's machine are started with releases from a test server, and their apps are checked. The others
// are parsed and validated.
import { describe, expect, test as testAnywhere } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unzipSync } from "fflate";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { readTerraformSource } from "#src/provisioners/terraform/source.ts";
import { EXAMPLES } from "#src/starter/examples.ts";
import { runStory } from "#test/browser/story.ts";
import { forFile } from "#test/support/for-file.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer, testSingleServer } from "#test/support/one-server.ts";
import { serveReleases } from "#test/support/release-server.ts";
import { tempDirectory } from "#test/support/server.ts";
import { followImport } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const test = testSingleServer("local");
const VERSIONS = { codeServer: "9.9.9", go: "1.99.1", jupyterlab: "9.9.9" };
const world = await forFile(openWorld());
const releases = await serveReleases(VERSIONS);
await forFile(Promise.resolve({ [Symbol.asyncDispose]: async () => releases[Symbol.dispose]() }));

const getAgent = ({ latest_build }: Workspace): WorkspaceAgent =>
  latest_build.resources[0]?.agents[0] as WorkspaceAgent;
const hasSettled = (workspace: Workspace): boolean =>
  ["ready", "start_error"].includes(getAgent(workspace)?.lifecycle_state) || workspace.latest_build.status === "failed";

const findOrImportTemplate = async (example_id: string): Promise<Template> => {
  const templates = await world.admin.get<Template[]>("/api/v2/templates");
  const existing = templates.find(({ name }) => name === example_id);
  if (existing) return existing;
  const organization = "/api/v2/organizations/default";
  const { id } = await world.admin.post<TemplateVersion>(`${organization}/templateversions`, { example_id });
  await followImport(world.admin, id);
  return world.admin.post<Template>(`${organization}/templates`, { name: example_id, template_version_id: id });
};

let workspaceCount = 0;
const startWorkspace = async (example_id: string, values: Readonly<Record<string, string>>): Promise<Workspace> => {
  const { id } = await findOrImportTemplate(example_id);
  const rich_parameter_values = Object.entries(values).map(([name, value]) => ({ name, value }));
  workspaceCount += 1;
  return createWorkspace(world.admin, id, `w-${workspaceCount}`, { rich_parameter_values });
};

const startAndWait = async (example_id: string, values: Readonly<Record<string, string>>): Promise<Workspace> => {
  const { id } = await startWorkspace(example_id, values);
  return awaitWorkspace(world.admin, id, hasSettled);
};

/** Waits until the agent's log contains the texts. Its last lines can arrive after the agent is ready. */
const waitForLog = (workspace: Workspace, ...texts: readonly string[]): Promise<unknown> =>
  until(async () => {
    const lines = await world.admin.get<{ output: string }[]>(`/api/v2/workspaceagents/${getAgent(workspace).id}/logs`);
    const log = lines.map(({ output }) => output).join("\n");
    return texts.every((text) => log.includes(text));
  });

const isHealthy = (workspace: Workspace): boolean =>
  getAgent(workspace).apps.every(({ health }) => health === "healthy");

const makeMirrorValues = (starter: string) => ({ download_from: `${releases.url}/${starter}` });

const deleteWorkspace = async ({ id }: Workspace): Promise<void> => {
  await createBuild(world.admin, id, "delete");
  await awaitWorkspace(world.admin, id, ({ latest_build }) => latest_build.status === "deleted");
};

const expectNoDownload = async ({ id }: Workspace): Promise<void> => {
  const requestCount = releases.requests.length;
  await createBuild(world.admin, id, "stop");
  await awaitWorkspace(world.admin, id, ({ latest_build }) => latest_build.status === "stopped");
  await createBuild(world.admin, id, "start");
  const restarted = await awaitWorkspace(
    world.admin,
    id,
    (workspace) => workspace.latest_build.build_number === 3 && hasSettled(workspace),
  );
  expect([getAgent(restarted).lifecycle_state, releases.requests.slice(requestCount)]).toEqual(["ready", []]);
};

describe("starters on the server's machine", () => {
  const SERVER_COMMAND = `node -e 'Bun.serve({ port: Number(process.env.PORT), fetch: () => new Response("preview") })'`;
  test.each([
    ["node", { version: "24", command: SERVER_COMMAND }, "Node.js v24.99.0 is ready."],
    ["go", { version: VERSIONS.go }, `go version go${VERSIONS.go} linux`],
    ["rust", { channel: "beta" }, "rustc 1.99.0"],
    ["python", { version: "3.13" }, "Python 3.13.99 is ready in ~/.venv."],
    ["code-server", { version: VERSIONS.codeServer, extensions: '["a.one","b.two"]' }, "VS Code is ready."],
    ["jupyterlab", { version: VERSIONS.jupyterlab }, "JupyterLab is ready."],
  ] as const)(
    "[TG-1] %s installs itself into the home folder, logs this, and its app answers; the next start downloads nothing",
    async (id, values, expected) => {
      const workspace = await startAndWait(id, { ...makeMirrorValues(id), ...values });
      await waitForLog(workspace, expected);
      expect(getAgent(workspace).lifecycle_state).toBe("ready");
      const hasApp = id === "node" || id === "code-server" || id === "jupyterlab";
      if (hasApp) await awaitWorkspace(world.admin, workspace.id, isHealthy);
      if (id === "node" || id === "code-server") await expectNoDownload(workspace);
      await deleteWorkspace(workspace);
    },
  );

  testNeeding(
    [needs.chromium, needs.node, requireSingleServer("local")],
    "[TG-1] the browser previews an app of each language's workspace on its own host",
    async () => {
      const languages = [
        ["node", { version: "24" }],
        ["go", { version: VERSIONS.go }],
        ["rust", { channel: "beta" }],
        ["python", { version: "3.13" }],
      ] as const;
      const workspaces = await Promise.all(
        languages.map(([id, values]) => {
          const script = `Bun.serve({ port: Number(process.env.PORT), fetch: () => new Response("made in ${id}") })`;
          return startAndWait(id, {
            ...makeMirrorValues(id),
            ...values,
            command: `'${process.execPath}' -e '${script}'`,
          });
        }),
      );
      for (const { id } of workspaces) await awaitWorkspace(world.admin, id, isHealthy);
      const ids = workspaces.map(({ id }) => id).join();
      const storyArguments = [world.server.url.href, world.admin.token ?? "", "Preview", ids];
      const { wrong, shown } = await runStory<{ shown: [host: string, text: string][] }>("preview.mjs", storyArguments);
      expect(wrong).toEqual([]);
      expect(shown.map(([, text]) => text)).toEqual(languages.map(([id]) => `made in ${id}`));
      expect(new Set(shown.map(([host]) => host)).size).toBe(languages.length);
      for (const [host] of shown) expect(host).toEndWith(".apps.localhost");
      await Promise.all(workspaces.map(deleteWorkspace));
    },
  );

  test("[TG-1] two workspaces with the same app listen on different ports", async () => {
    const values = { ...makeMirrorValues("code-server"), version: VERSIONS.codeServer };
    const workspaces = await Promise.all([startAndWait("code-server", values), startAndWait("code-server", values)]);
    const addresses = workspaces.map((workspace) => getAgent(workspace).apps[0]?.url);
    expect(new Set(addresses).size).toBe(2);
    for (const { id } of workspaces) await awaitWorkspace(world.admin, id, isHealthy);
    await Promise.all(workspaces.map(deleteWorkspace));
  });

  test.each(["node", "rust", "jupyterlab"])(
    "[TG-2] %s explains that the internet is unreachable and what to do",
    async (id) => {
      const workspace = await startAndWait(id, { download_from: "http://127.0.0.1:9" });
      expect(getAgent(workspace).lifecycle_state).toBe("start_error");
      const advice = 'The first start needs the internet. Without it, set the parameter "Download from" to a mirror.';
      await waitForLog(workspace, "http://127.0.0.1:9", advice);
      await deleteWorkspace(workspace);
    },
  );

  test("[TG-2] an archive with a wrong checksum is not installed", async () => {
    const path = `/damaged/go${VERSIONS.go}.linux-${process.arch === "arm64" ? "arm64" : "amd64"}.tar.gz`;
    releases.put(path, "not what was released");
    releases.put(`${path}.sha256`, "0".repeat(64));
    const workspace = await startAndWait("go", { version: VERSIONS.go, download_from: `${releases.url}/damaged` });
    expect(getAgent(workspace).lifecycle_state).toBe("start_error");
    await waitForLog(workspace, "does not have the expected checksum");
    await deleteWorkspace(workspace);
  });

  test("[TG-1] a workspace of the starter blank has metadata", async () => {
    const workspace = await startAndWait("blank", {});
    const loadMetadata = async () =>
      getAgent(await world.admin.get<Workspace>(`/api/v2/workspaces/${workspace.id}`)).metadata.map(
        ({ result }) => result,
      );
    await until(async () => (await loadMetadata()).every(({ value, error }) => value !== "" || error !== ""));
    expect((await loadMetadata()).map(({ error }) => error)).toEqual(["", "", ""]);
    await deleteWorkspace(workspace);
  });
});

describe("every starter", () => {
  testAnywhere(
    "[TG-3] every starter has a description, an icon and a README, and variants of a kind have different provisioners",
    () => {
      const kinds = new Map<string, string[]>();
      for (const [id, { description, icon, kind, markdown, provisioner }] of EXAMPLES) {
        expect([id, description.endsWith("."), icon.startsWith("/icon/")]).toEqual([id, true, true]);
        expect(markdown).toStartWith("# ");
        kinds.set(kind, [...(kinds.get(kind) ?? []), provisioner]);
      }
      for (const [kind, provisioners] of kinds)
        expect([kind, new Set(provisioners).size]).toEqual([kind, provisioners.length]);
    },
  );

  const terraformExamples = [...EXAMPLES]
    .filter(([, { provisioner }]) => provisioner === "terraform")
    .map(([id]) => id);

  testAnywhere.each(terraformExamples)(
    "[TG-3] %s is a valid Terraform template, and every variable has a description",
    async (id) => {
      using folder = tempDirectory();
      const path = join(folder.path, "archive.zip");
      writeFileSync(path, EXAMPLES.get(id)?.archive() ?? "");
      const source = await readTerraformSource({ path, mimetype: "application/zip" });
      expect(source?.readme).toStartWith("# ");
      expect(source?.variables.filter(({ description }) => description === "")).toEqual([]);
      expect(source?.variables.length).toBeGreaterThan(0);
    },
  );

  for (const id of terraformExamples) {
    testNeeding([needs.terraform], `[TG-3] ${id} is formatted as by terraform fmt`, async () => {
      using folder = tempDirectory();
      const files = join(folder.path, "files");
      mkdirSync(files);
      const { "main.tf": main = new Uint8Array() } = unzipSync(EXAMPLES.get(id)?.archive() ?? new Uint8Array());
      writeFileSync(join(files, "main.tf"), main);
      const terraform = Bun.which("tofu") ?? Bun.which("terraform") ?? "";
      const { exitCode, stdout, stderr } = await Bun.$`${terraform} fmt -check -diff ${files}`.nothrow().quiet();
      expect([exitCode, stdout.toString() + (exitCode === 0 ? "" : stderr.toString())]).toEqual([0, ""]);
    });
  }
});
