// Values of template variables may be secrets, so the server stores them only encrypted.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Encryption } from "#base/encryption.ts";
import { openDefaults, sealManifest } from "#db/templates/variables.ts";
import { loadKnownSecrets } from "#domain/chats/known-secrets.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { TemplateVariable } from "#schema/templates/template-version.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { loadManifest } from "#src/api/agents/rpc/manifest.ts";
import { SecretMask } from "#src/tools/mask.ts";
import { getContext } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { openStoredData } from "#test/support/stored.ts";
import { ECHO, importVersion, uniqueText } from "#test/support/templates.ts";
import { awaitBuild, createWorkspace, openWorld, type World } from "#test/support/workspaces.ts";

const SECRET = "hunter2-of-the-registry";
const YAML = `${ECHO}variables:\n  - {name: region}\n  - {name: registry_password, sensitive: true, default: ""}\n`;

const WITH_SECRET = `provisioner: echo
variables:
  - {name: registry_password, sensitive: true, default: ""}
resources:
  - name: main
    metadata:
      - {key: password, value: "{{ variables.registry_password }}", sensitive: true}
      - {key: login, value: "user:{{ variables.registry_password }}"}
    agents:
      - name: main
        directory: /srv/{{ variables.registry_password }}
        apps:
          - {slug: web, display_name: "{{ variables.registry_password }}", url: "http://localhost:1/?t={{ variables.registry_password }}"}
          - {slug: tool, command: "{{ variables.registry_password }}"}
        env: {REGISTRY: "user:{{ variables.registry_password }}", PLAIN: "yes"}
        scripts:
          - {display_name: One, script: "{{ variables.registry_password }}"}
          - {display_name: Two, script: "echo plain"}
        metadata:
          - {key: m, script: "{{ variables.registry_password }}", interval: 10}
`;

const listFiles = (directory: string): string[] =>
  (readdirSync(directory, { recursive: true }) as string[])
    .map((name) => join(directory, name))
    .filter((file) => statSync(file).isFile());

/** Returns the variable REGISTRY of a build's agent. */
const readRegistry = async ({ server }: World, { latest_build }: Workspace): Promise<string | undefined> => {
  const agent_id = latest_build.resources[0]?.agents[0]?.id ?? "";
  return (await loadManifest(getContext(server), agent_id, server.url)).environmentVariables?.REGISTRY;
};

describe("values of template variables", () => {
  test("[TP-31] are encrypted in the data directory, and a restarted server still has them", async () => {
    using temp = tempDirectory();
    let id: string;
    {
      await using world = await openWorld({ directory: temp.path });
      const version = await importVersion(world.admin, uniqueText() + YAML, {
        user_variable_values: [
          { name: "region", value: "eu-of-the-test" },
          { name: "registry_password", value: SECRET },
        ],
      });
      expect(version.job.status).toBe("succeeded");
      id = version.id;
    }
    const filesWithSecret = listFiles(temp.path).filter((file) => readFileSync(file).includes(SECRET));
    expect(filesWithSecret).toEqual([]);
    await using world = await openWorld({ directory: temp.path });
    const variables = await world.admin.get<TemplateVariable[]>(`/api/v2/templateversions/${id}/variables`);
    expect(variables.map(({ name, value }) => [name, value])).toEqual([
      ["region", "eu-of-the-test"],
      ["registry_password", ""],
    ]);
  });

  test("[TP-33] are never stored in plain text, and only the agent of a build gets them", async () => {
    using temp = tempDirectory();
    await using world = await openWorld({ directory: temp.path });
    const version = await importVersion(world.admin, uniqueText() + WITH_SECRET, {
      user_variable_values: [{ name: "registry_password", value: SECRET }],
    });
    const organization = (await world.admin.get<{ id: string }>("/api/v2/organizations/default")).id;
    const template = await world.admin.post<{ id: string }>(`/api/v2/organizations/${organization}/templates`, {
      name: "with-secret",
      template_version_id: version.id,
    });
    const { id } = await createWorkspace(world.admin, template.id);
    const workspace = await awaitBuild(world.admin, id);
    const env = { REGISTRY: `user:${SECRET}`, PLAIN: "yes", SLIPWAY_VAR_REGISTRY_PASSWORD: SECRET };
    const agent = workspace.latest_build.resources[0]?.agents[0];
    const expectedEnvironment = { REGISTRY: "(hidden)", PLAIN: "yes", SLIPWAY_VAR_REGISTRY_PASSWORD: "(hidden)" };
    expect(agent?.environment_variables).toEqual(expectedEnvironment);
    expect(agent?.scripts.map(({ script }) => script)).toEqual(["(hidden)", "echo plain"]);
    expect(agent?.metadata.map(({ description }) => description.script)).toEqual(["(hidden)"]);
    expect(agent?.directory).toBe("/srv/(hidden)");
    expect(agent?.apps.map(({ display_name, url, command }) => [display_name, url, command])).toEqual([
      ["(hidden)", "http://localhost:1/?t=(hidden)", ""],
      ["tool", "", "(hidden)"],
    ]);
    expect(workspace.latest_build.resources[0]?.metadata.map(({ value }) => value)).toEqual(["", "user:(hidden)"]);
    expect(JSON.stringify(workspace)).not.toContain(SECRET);
    const manifest = await loadManifest(getContext(world.server), agent?.id ?? "", world.server.url);
    expect(manifest.environmentVariables).toEqual(env);
    expect(manifest.scripts?.map(({ script }) => script)).toEqual([SECRET, "echo plain"]);
    expect(manifest.metadata?.map(({ script }) => script)).toEqual([SECRET]);
    expect(listFiles(temp.path).filter((file) => readFileSync(file).includes(SECRET))).toEqual([]);
  });

  test("[TO-21] that are sensitive are hidden in chats of the workspace, even if they are defaults", async () => {
    await using world = await openWorld();
    const fallback = "fallback-of-the-registry";
    const yaml = WITH_SECRET.replace(
      "variables:\n",
      `variables:\n  - {name: region}\n  - {name: other, sensitive: true, default: ${fallback}}\n`,
    );
    const { id: template_version_id } = await importVersion(world.admin, uniqueText() + yaml, {
      user_variable_values: [
        { name: "registry_password", value: SECRET },
        { name: "region", value: "eu-of-the-test" },
      ],
    });
    const organization = (await world.admin.get<{ id: string }>("/api/v2/organizations/default")).id;
    const template = await world.admin.post<{ id: string }>(`/api/v2/organizations/${organization}/templates`, {
      name: "with-secrets",
      template_version_id,
    });
    const { id: workspace_id } = await createWorkspace(world.admin, template.id);
    const { owner_id } = await awaitBuild(world.admin, workspace_id);
    const maskFor = async (workspaceId: string | null): Promise<string> => {
      const knownSecrets = await loadKnownSecrets(getContext(world.server), {
        chat_id: "",
        owner_id,
        workspace_id: workspaceId,
      });
      return new SecretMask(knownSecrets).text(`${SECRET} ${fallback} eu-of-the-test`);
    };
    expect(await maskFor(workspace_id)).toBe("[hidden] [hidden] eu-of-the-test");
    expect(await maskFor(null)).toContain(SECRET);
  });

  test("[TP-31] that an older server stored in plain text are encrypted at the next start", async () => {
    using temp = tempDirectory();
    let id: string;
    {
      await using world = await openWorld({ directory: temp.path });
      id = (
        await importVersion(world.admin, uniqueText() + YAML, {
          user_variable_values: [{ name: "region", value: "x" }],
        })
      ).id;
    }
    {
      await using stored = await openStoredData(temp.path);
      const oldValues = JSON.stringify({ region: "from-before", registry_password: SECRET });
      await stored.run(
        `update template_versions set variable_values = '${oldValues}', sealed_variable_values = '' where id = '${id}'`,
      );
    }
    await using world = await openWorld({ directory: temp.path });
    const variables = await world.admin.get<TemplateVariable[]>(`/api/v2/templateversions/${id}/variables`);
    expect(variables.find(({ name }) => name === "region")?.value).toBe("from-before");
    await using stored = await openStoredData(temp.path);
    const values = `select variable_values, sealed_variable_values from template_versions where id = '${id}'`;
    expect(await stored.rows(values)).toEqual([["{}", expect.stringMatching(/^v1\./)]]);
  });

  test("[TP-37] are encrypted as defaults of sensitive variables, even those of an older server, and reach agents", async () => {
    using temp = tempDirectory();
    const yaml = WITH_SECRET.replace('sensitive: true, default: ""}', `sensitive: true, default: ${SECRET}}`);
    let id: string;
    let template: string;
    {
      await using world = await openWorld({ directory: temp.path });
      const version = await importVersion(world.admin, uniqueText() + yaml);
      id = version.id;
      template = (
        await world.admin.post<{ id: string }>(`/api/v2/organizations/${version.organization_id}/templates`, {
          name: "with-default",
          template_version_id: id,
        })
      ).id;
    }
    const readManifest = async (): Promise<string> => {
      await using stored = await openStoredData(temp.path);
      return String((await stored.rows(`select manifest from template_versions where id = '${id}'`))[0]?.[0]);
    };
    const sealed = await readManifest();
    expect(sealed).not.toContain(SECRET);
    {
      await using stored = await openStoredData(temp.path);
      const unsealed = JSON.parse(sealed) as { variables: { default: string }[] };
      for (const variable of unsealed.variables) variable.default = SECRET;
      await stored.run(`update template_versions set manifest = '${JSON.stringify(unsealed)}' where id = '${id}'`);
      await stored.run("delete from settings where key = 'manifests_sealed'");
    }
    await using world = await openWorld({ directory: temp.path });
    expect(await readManifest()).not.toContain(SECRET);
    const [variable] = await world.admin.get<TemplateVariable[]>(`/api/v2/templateversions/${id}/variables`);
    expect(variable).toMatchObject({ name: "registry_password", value: "", default_value: "", required: false });
    const workspace = await awaitBuild(world.admin, (await createWorkspace(world.admin, template)).id);
    expect(await readRegistry(world, workspace)).toBe(`user:${SECRET}`);
  });

  test("[TP-37] are encrypted where a Terraform plan contains them, without other values", () => {
    const encryption = new Encryption(new Uint8Array(32));
    const manifest: Manifest = {
      provisioner: "terraform",
      variables: [
        { name: "key", sensitive: true, default: "fallback-key" },
        { name: "region", default: "eu" },
      ],
      resources: [
        {
          name: "main",
          metadata: [{ key: "key", value: SECRET, sensitive: true }],
          agents: [
            {
              name: "main",
              env: { KEY: `a ${SECRET}`, OLD: "fallback-key", PLAIN: "eu" },
              scripts: [{ display_name: "One", script: `login ${SECRET}` }],
              metadata: [{ key: "m", script: SECRET, interval: 10 }],
            },
          ],
        },
      ],
    };
    const sealed = sealManifest(encryption, "id", manifest, { key: SECRET });
    for (const secret of [SECRET, "fallback-key"]) expect(JSON.stringify(sealed)).not.toContain(secret);
    expect(sealed.resources[0]?.agents?.[0]?.env?.PLAIN).toBe("eu");
    expect(openDefaults(encryption, "id", sealed.variables ?? [])).toEqual(manifest.variables ?? []);
    // Encrypting again changes nothing.
    expect(sealManifest(encryption, "id", sealed, { key: SECRET })).toEqual(sealed);
  });

  test("[TP-35] are taken from the active version if a new one has none", async () => {
    await using world = await openWorld();
    const { admin } = world;
    const user_variable_values = [
      { name: "region", value: "north" },
      { name: "registry_password", value: SECRET },
    ];
    const first = await importVersion(admin, YAML, { user_variable_values });
    const template = await admin.post<{ id: string }>(`/api/v2/organizations/${first.organization_id}/templates`, {
      name: "with-values",
      template_version_id: first.id,
    });
    const secondVersion = await importVersion(admin, WITH_SECRET, { template_id: template.id });
    expect(secondVersion.job.status).toBe("succeeded");
    await admin.fetch("PATCH", `/api/v2/templates/${template.id}/versions`, { id: secondVersion.id });
    const { id } = await createWorkspace(admin, template.id, "kept");
    const build = await awaitBuild(admin, id);
    expect(await readRegistry(world, build)).toBe(`user:${SECRET}`);
    const thirdVersion = await importVersion(admin, YAML, {
      template_id: template.id,
      user_variable_values: [{ name: "region", value: "south" }],
    });
    const variables = await admin.get<TemplateVariable[]>(`/api/v2/templateversions/${thirdVersion.id}/variables`);
    expect(variables.map(({ name, value }) => [name, value])).toEqual([
      ["region", "south"],
      ["registry_password", ""],
    ]);
    // Without a template, there is no previous version to take values from.
    const withoutTemplate = await importVersion(admin, YAML);
    expect(withoutTemplate.job.error).toBe("variable region: a value is required");
  });
});
