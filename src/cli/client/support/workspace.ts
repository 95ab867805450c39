// `slipway support bundle WORKSPACE --output-file FILE.zip`: collects diagnostics for one workspace in one file, without secrets. Existing
// files are not overwritten.
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { strToU8, zipSync } from "fflate";
import { redact } from "#base/redact.ts";
import { COMMIT, VERSION } from "#base/version.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { requireConfirmable, requireConfirmation } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { checkNetwork } from "../network/netcheck.ts";
import { withServer } from "../remote.ts";
import { listAgents, selectWorkspace } from "../workspaces/find.ts";

const MAX_NAME_LENGTH = 64;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, {
    values: ["output-file"],
    switches: ["yes"],
    short: { y: "yes", O: "output-file" },
  });
  const findWorkspace = selectWorkspace(input, words);
  requireConfirmable(input, has.yes, "written");
  return withServer("support bundle", input, value, async ({ client }) => {
    const workspace = await findWorkspace(client);
    const file = value["output-file"] ?? `slipway-support-${toFileName(workspace.name)}.zip`;
    if (!has.yes)
      await requireConfirmation(input, `Write logs and settings of ${toPlainLine(workspace.name)} into ${file}?`);
    const files = await collectFiles(input, client, workspace);
    try {
      writeFileSync(file, zipSync(files), { flag: "wx", mode: 0o600 });
    } catch (error) {
      throw new VerbFailure((error as Error).message);
    }
    const names = Object.keys(files);
    if (has.json) input.print(JSON.stringify({ path: resolve(file), files: names }));
    else input.print(`${resolve(file)} holds ${names.join(", ")}. Review it before you send it: unzip -p ${file}`);
  });
};

/** Returns the last part of a name with plain characters only: the server that sends it must not choose a folder. */
const toFileName = (name: string): string =>
  name
    .split(/[/\\]/)
    .at(-1)
    ?.replace(/[^A-Za-z0-9_-]+/g, "_")
    .slice(0, MAX_NAME_LENGTH) || "workspace";

const collectFiles = async (
  input: VerbInput,
  client: Client,
  workspace: Workspace,
): Promise<Record<string, Uint8Array>> => {
  const files: Record<string, Uint8Array> = {};
  // A file that cannot be loaded contains the error instead, because the other files are still useful.
  const add = async (name: string, load: () => Promise<string>): Promise<void> => {
    const text = await load().catch((error: Error) => `could not be read: ${error.message}`);
    files[name] = strToU8(redact(text));
  };
  const toJson = async (value: unknown): Promise<string> => JSON.stringify(await value, null, 2);
  const formatLines = (logs: readonly { created_at: string; output: string }[]): string =>
    logs.map(({ created_at, output }) => `${created_at} ${output}\n`).join("");
  const clientInfo = {
    version: VERSION,
    commit: COMMIT,
    bun: Bun.version,
    system: process.platform,
    machine: process.arch,
  };
  await add("client.json", () => toJson(clientInfo));
  await add("server.json", () => toJson(client.get("/api/v2/buildinfo")));
  await add("network.json", () => toJson(checkNetwork(input, client)));
  await add("workspace.json", () => toJson(workspace));
  await add("builds.json", () => toJson(client.get(`/api/v2/workspaces/${workspace.id}/builds?limit=10`)));
  await add("build.log", async () =>
    formatLines(await client.get(`/api/v2/workspacebuilds/${workspace.latest_build.id}/logs`)),
  );
  for (const { id, name } of listAgents(workspace)) {
    await add(`agent-${toFileName(name)}.log`, async () =>
      formatLines(await client.get(`/api/v2/workspaceagents/${id}/logs`)),
    );
  }
  return files;
};
