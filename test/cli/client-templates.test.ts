// The commands that create, update and delete templates and their versions.
import { expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { Client } from "#src/client.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { forFile } from "#test/support/for-file.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";

const world = await forFile(openClientWorld());
await signInAs(world);
const admin = new Client(world.server.url, readToken(world));

const splitWords = (line: string): string[] => line.split(" ");
const run = (line: string) => world.run(splitWords(line));
const runOk = (line: string) => world.runOk(splitWords(line));
const loadTemplate = (name: string): Promise<Template> => admin.get(`/api/v2/organizations/default/templates/${name}`);

test("[CV-25] `templates init` creates a folder from an example, `push` uploads it, and `pull` restores every file", async () => {
  expect(await runOk("templates init mine")).toContain("holds template.yaml, README.md. `slipway templates push mine`");
  const manifest = readFileSync(join(world.home, "mine", "template.yaml"), "utf8");
  expect(manifest).toContain("provisioner: local");
  mkdirSync(join(world.home, "mine", "files"));
  writeFileSync(join(world.home, "mine", "files", "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
  await runOk("templates push mine --version first");
  expect(await runOk("templates pull mine copy")).toContain("from version first");
  expect(readFileSync(join(world.home, "copy", "template.yaml"), "utf8")).toBe(manifest);
  expect(readFileSync(join(world.home, "copy", "files", "run.sh"), "utf8")).toBe("#!/bin/sh\n");
  const [notEmpty, unknown, example] = await Promise.all([
    run("templates init copy"),
    run("templates pull mine other --version none"),
    run("templates init other --example cloud"),
  ]);
  const rows = JSON.parse(await runOk("templates init --list --json")) as { name: string }[];
  expect(rows.map(({ name }) => name)).toContain("code-server-docker");
  expect(await runOk("templates init aws --example terraform-aws")).toContain("holds main.tf, README.md.");
  expect(notEmpty).toMatchObject({ code: 1, err: expect.stringContaining("copy is not empty") });
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("has no version none") });
  expect(example.code).toBe(2);
  expect([existsSync(join(world.home, "other")), readdirSync(join(world.home, "copy")).sort()]).toEqual([
    ...[false, ["README.md", "files", "template.yaml"]],
  ]);
});

test("[CV-25] versions are listed, promoted, archived and restored; the active version cannot be archived", async () => {
  await runOk("templates init versioned");
  await runOk("templates push versioned --version v1 --message begin");
  appendFileSync(join(world.home, "versioned", "template.yaml"), "# more\n");
  await runOk("templates push versioned --version v2 --no-activate");
  expect(await runOk("templates versions versioned")).toMatch(
    /^VERSION .*\nv2 +succeeded +admin .*\nv1 +succeeded, active +admin .* begin\n$/,
  );
  expect(await run("templates archive versioned v1")).toMatchObject({
    code: 1,
    err: expect.stringContaining("active"),
  });
  expect(await runOk("templates promote versioned v2")).toBe("v2 of versioned is the active version.\n");
  const { active_version_id } = await loadTemplate("versioned");
  expect(JSON.parse(await runOk("templates archive versioned v1 --json"))).toMatchObject({ archived: true });
  const versions = JSON.parse(await runOk("templates versions versioned --json")) as TemplateVersion[];
  expect(versions.map(({ id }) => id)).toEqual([active_version_id]);
  expect(await runOk("templates versions versioned --archived")).toMatch(/\nv1 +succeeded, archived /);
  expect(await runOk("templates unarchive versioned v1")).toBe("v1 of versioned is unarchived.\n");
  expect((await runOk("templates versions versioned")).split("\n")).toHaveLength(4);
});

test("[CV-25] a template is renamed, deprecated, and deleted after confirmation", async () => {
  await runOk("templates init changing");
  await runOk("templates push changing");
  await world.runOk([
    ...["templates", "edit", "changing", "--display-name", "Changed one", "--ttl", "8h", "--dormant-after", "30d"],
    ...[
      "--deprecate",
      "use another",
      "--autostop-days",
      "monday,friday",
      "--autostop-weeks",
      "2",
      "--people-cancel",
      "off",
    ],
    ...["--port-sharing", "public"],
  ]);
  expect(await loadTemplate("changing")).toMatchObject({
    display_name: "Changed one",
    default_ttl_ms: 28_800_000,
    time_til_dormant_ms: 2_592_000_000,
    autostop_requirement: { days_of_week: ["monday", "friday"], weeks: 2 },
    allow_user_cancel_workspace_jobs: false,
    max_port_share_level: "public",
    deprecated: true,
    deprecation_message: "use another",
  });
  expect(await run("templates edit changing --default-agent codex")).toMatchObject({
    code: 1,
    err: expect.stringContaining('The coding agent "Codex" is disabled.'),
  });
  await admin.put<unknown>("/api/v2/ai/agents/mine", TEST_AGENT);
  await runOk("templates edit changing --default-agent mine");
  expect(await loadTemplate("changing")).toMatchObject({ default_coding_agent: "mine", display_name: "Changed one" });
  await runOk("templates edit changing --name changed --ttl off --undeprecate --default-agent none");
  expect(await loadTemplate("changed")).toMatchObject({
    default_ttl_ms: 0,
    default_coding_agent: "",
    deprecated: false,
    display_name: "Changed one",
  });
  const invalid = await Promise.all(
    ["templates edit changed", "templates edit changed --ttl long", "templates delete changed"].map(run),
  );
  expect(invalid.map(({ code }) => code)).toEqual([2, 2, 2]);
  await using terminal = world.runOnTerminal("slipway templates delete");
  await terminal.until(/Template \(.*changed.*\): /);
  terminal.type("changed\r");
  await terminal.until("Type its name: ");
  terminal.type("changed\r");
  await terminal.until("changed is deleted.");
  expect(await terminal.exited).toBe(0);
  expect(await run("templates versions changed")).toMatchObject({
    code: 1,
    err: expect.stringContaining("no template"),
  });
});

test("[CV-41] a push warns why a preset gets no prebuilt workspaces; a parameter that contradicts a preset is rejected", async () => {
  const folder = join(world.home, "kept");
  mkdirSync(folder);
  const manifest = {
    provisioner: "echo",
    parameters: [
      { name: "size", type: "string", default: "s" },
      { name: "owner", type: "string" },
    ],
    presets: [{ name: "small", parameters: { size: "s" }, prebuilds: 1 }],
    resources: [{ name: "main", agents: [{ name: "main" }] }],
  };
  writeFileSync(join(folder, "template.yaml"), JSON.stringify(manifest));
  const pushed = await world.run(["templates", "push", folder]);
  expect([pushed.code, pushed.err]).toEqual([
    0,
    expect.stringMatching(/warning: no workspaces are prebuilt for the preset small: .*owner/),
  ]);
  const create = ["workspaces", "create", "w", "--template", "kept", "--preset", "small", "--parameter", "size=l"];
  const refused = await world.run(create);
  expect([refused.code, refused.err]).toEqual([
    1,
    expect.stringContaining("The preset small sets size to s. Leave out --preset, or --parameter size=l."),
  ]);
});
