// A server that runs Terraform for real, offline: the program of this machine with the provider of `.ci/terraform-tools`. The agents that
// it brings to life are this program, fetched from the server as any machine would.
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
import { programCommand } from "./program.ts";
import { noteFolder } from "./run/ledger.ts";
import type { TestServerOptions } from "./server.ts";
import { importVersion } from "./templates.ts";
import { openWorld, type World } from "./workspaces.ts";

const ACCOUNTS = ["github", "gitlab"].map((id) => ({ id, type: id, client_id: "client", client_secret: "hush" }));

/** A program of one file that is this one: what the server serves below /bin. */
const agentProgram = (folder: string): string => {
  const file = join(folder, "slipway-agent");
  writeFileSync(
    file,
    `#!/bin/sh\nexec ${programCommand()
      .map((word) => `"${word}"`)
      .join(" ")} "$@"\n`,
  );
  chmodSync(file, 0o755);
  return file;
};

/** Settings and variables of such a server. `folder` is the test's own. */
export const terraformServer = (folder: string, options: TestServerOptions = {}): TestServerOptions => {
  mkdirSync(folder, { recursive: true });
  // Alongside other tests, which do not give way, a build that does would take ten times as long.
  const environment = { PATH: process.env.PATH ?? "", HOME: folder, TMPDIR: folder, SLIPWAY_TEST_EVEN: "1" };
  return {
    ...options,
    environment: { ...environment, ...options.environment },
    env: {
      ...environment,
      SLIPWAY_TERRAFORM_CLI_CONFIG: join(needs.terraform.file, "rc"),
      SLIPWAY_AGENT_BINARY: agentProgram(folder),
      SLIPWAY_EXTERNAL_AUTH: JSON.stringify(ACCOUNTS),
      ...options.env,
    },
  };
};

export type TerraformWorld = World & { readonly folder: string };

/** A server with its first user signed in; its folders go when it is disposed. */
export const openTerraformWorld = async (options: TestServerOptions = {}): Promise<TerraformWorld> => {
  // Short: the provider puts a socket below it.
  const folder = mkdtempSync(join(tmpdir(), "slipway-tf-"));
  noteFolder(folder);
  const world = await openWorld(terraformServer(folder, options));
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

/** The files of a template of test/provisioners/terraform/templates, with texts replaced in main.tf. */
export const filesOf = (name: string, replace: Readonly<Record<string, string>> = {}): Record<string, string> => {
  let main = readFileSync(join(TEMPLATES, name, "main.tf"), "utf8");
  for (const [from, to] of Object.entries(replace)) {
    if (!main.includes(from)) throw new Error(`the template ${name} does not hold ${from}`);
    main = main.replaceAll(from, to);
  }
  return { "main.tf": main };
};

/** A template of these files, imported by the real program. */
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

/** Processes whose environment or command line holds this text. */
export const processesWith = (text: string): number[] =>
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
