// A server that runs Terraform offline: this machine's program with the provider of `.ci/terraform-tools`. The agents of its workspaces are
// the program under test, downloaded from the server as on any machine.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import type { Client } from "#src/client.ts";
import { needs } from "./needs.ts";
import { toProgramCommand } from "./program.ts";
import { noteFolder } from "./run/ledger.ts";
import type { TestServerOptions } from "./server.ts";
import { importVersion } from "./templates.ts";
import { openWorld, type World } from "./workspaces.ts";

const ACCOUNTS = ["github", "gitlab"].map((id) => ({ id, type: id, client_id: "client", client_secret: "hush" }));

/** Creates a single-file program that runs the program under test. The server serves it below /bin. */
const writeAgentProgram = (folder: string): string => {
  const file = join(folder, "slipway-agent");
  writeFileSync(
    file,
    `#!/bin/sh\nexec ${toProgramCommand()
      .map((word) => `"${word}"`)
      .join(" ")} "$@"\n`,
  );
  chmodSync(file, 0o755);
  return file;
};

/** Returns the settings and environment of such a server. `folder` belongs to the test. */
export const toTerraformOptions = (folder: string, options: TestServerOptions = {}): TestServerOptions => {
  mkdirSync(folder, { recursive: true });
  // Builds with low priority would take ten times as long next to other tests.
  const environment = { PATH: process.env.PATH ?? "", HOME: folder, TMPDIR: folder, SLIPWAY_TEST_EVEN: "1" };
  return {
    ...options,
    environment: { ...environment, ...options.environment },
    env: {
      ...environment,
      SLIPWAY_TERRAFORM_CLI_CONFIG: join(needs.terraform.file, "rc"),
      SLIPWAY_AGENT_BINARY: writeAgentProgram(folder),
      SLIPWAY_EXTERNAL_AUTH: JSON.stringify(ACCOUNTS),
      ...options.env,
    },
  };
};

export type TerraformWorld = World & { readonly folder: string };

/** Starts a server with its first user signed in; its folders are removed when it is disposed. */
export const openTerraformWorld = async (options: TestServerOptions = {}): Promise<TerraformWorld> => {
  // The path is short, because the provider creates a socket in the folder.
  const folder = mkdtempSync(join(tmpdir(), "slipway-tf-"));
  noteFolder(folder);
  const world = await openWorld(toTerraformOptions(folder, options));
  return {
    ...world,
    folder,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const TEMPLATES = new URL("../provisioners/terraform/templates/", import.meta.url).pathname;

/** Returns the files of a template of test/provisioners/terraform/templates, with texts replaced in main.tf. */
export const readTemplateFiles = (
  name: string,
  replace: Readonly<Record<string, string>> = {},
): Record<string, string> => {
  let main = readFileSync(join(TEMPLATES, name, "main.tf"), "utf8");
  for (const [from, to] of Object.entries(replace)) {
    if (!main.includes(from)) throw new Error(`the template ${name} does not contain ${from}`);
    main = main.replaceAll(from, to);
  }
  return { "main.tf": main };
};

/** Creates a template of these files, imported by the real program. */
export const makeTerraformTemplate = async (
  client: Client,
  files: Record<string, string>,
  name: string,
): Promise<{ template: Template; version: TemplateVersion }> => {
  const version = await importVersion(client, files);
  if (version.job.status !== "succeeded") throw new Error(`the import has failed: ${version.job.error}`);
  const body = { name, template_version_id: version.id };
  return { version, template: await client.post<Template>("/api/v2/organizations/default/templates", body) };
};

/** Returns the processes with this text in their environment or command line. */
export const findProcesses = (text: string): number[] =>
  (existsSync("/proc") ? readdirSync("/proc") : [])
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return ["environ", "cmdline"].some((file) => readFileSync(`/proc/${name}/${file}`, "latin1").includes(text));
      } catch {
        return false;
      }
    })
    .map(Number);
