// `slipway templates push [FOLDER]`: uploads a folder with a template.yaml or *.tf, waits for its import, and makes the new version active
// (rule CV-7). Creates the template if it does not exist.

import { basename, resolve } from "node:path";
import { formatSize } from "#base/format-size.ts";
import { pause } from "#base/retry.ts";
import type { Template } from "#schema/templates/template.ts";
import type { CreateTemplateVersion, TemplateVersion } from "#schema/templates/template-version.ts";
import { ApiError, type Client } from "#src/client.ts";
import { type Arguments, parsePairs, readArguments, requireNoWords } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { Progress } from "../../progress.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { followJobLog, type Remote, withServer } from "../remote.ts";
import { packFolder } from "./folder.ts";

/** Bytes of the upload between two progress updates. */
const CHUNK_BYTES = 64 * 1024;

/** Returns the bytes as a stream. `onProgress` receives the number of bytes read so far. */
const toCountedStream = (bytes: Uint8Array, onProgress: (readBytes: number) => void): ReadableStream<Uint8Array> => {
  let offset = 0;
  return new ReadableStream({
    pull(controller) {
      onProgress(offset);
      if (offset >= bytes.byteLength) return controller.close();
      controller.enqueue(bytes.subarray(offset, offset + CHUNK_BYTES));
      offset = Math.min(offset + CHUNK_BYTES, bytes.byteLength);
    },
  });
};

const SHAPE = {
  values: ["name", "version", "message", "organization"],
  lists: ["variable", "provisioner-tag"],
  switches: ["no-activate"],
} as const;
type PushArguments = Arguments<(typeof SHAPE.values)[number], (typeof SHAPE.lists)[number], "no-activate">;

export const run: RunVerb = async (input) => {
  const args = readArguments(input.argv, SHAPE);
  const [folder = ".", ...more] = args.words;
  requireNoWords(more);
  const name = args.value.name ?? toTemplateName(folder);
  return withServer("templates push", input, args.value, async (remote) => {
    const { client } = remote;
    const organization = encodeURIComponent(args.value.organization ?? "default");
    const existing = await findTemplate(client, organization, name);
    const version = await importVersion(input, remote, { folder, args, organization, existing });
    if (version.job.status !== "succeeded") {
      throw new VerbFailure(`the import of ${folder} failed: ${toPlainLine(version.job.error ?? version.job.status)}`);
    }
    const template =
      args.has["no-activate"] && existing
        ? existing
        : await activateVersion(client, organization, name, existing, version);
    if (args.has.json) input.print(JSON.stringify({ template, version }));
    else
      input.print(formatResult(name, version.name, existing !== undefined, template.active_version_id === version.id));
    for (const line of await findPrebuildProblems(input, client, template, version)) input.printError(`${line}\n`);
  });
};

/** How long the server may take to detect that workspaces cannot be prebuilt. */
const PROBLEM_TIMEOUT_MS = 3_000;
const POLL_INTERVAL_MS = 200;

/**
 * Returns the reasons why workspaces of the active version cannot be prebuilt, one line per preset. The server detects this shortly after
 * the push.
 */
const findPrebuildProblems = async (
  { clock, signal }: VerbInput,
  client: Client,
  template: Template,
  { id }: TemplateVersion,
): Promise<string[]> => {
  if (template.active_version_id !== id) return [];
  const until = clock.monotonic() + PROBLEM_TIMEOUT_MS;
  for (;;) {
    const presets = await client.get(`/api/v2/templateversions/${id}/presets`, { signal });
    if (!presets.some((preset) => (preset.desired_prebuild_instances ?? 0) > 0)) return [];
    const lines = presets.flatMap(({ name, prebuild_problem: problem }) =>
      problem === undefined ? [] : [`warning: no workspaces are prebuilt for the preset ${name}: ${problem}`],
    );
    if (lines.length > 0 || clock.monotonic() > until || signal.aborted) return lines;
    await pause(clock, POLL_INTERVAL_MS, signal);
  }
};

const formatResult = (name: string, version: string, existed: boolean, isActive: boolean): string => {
  if (!existed) return `Created the template ${name}, version ${version}.`;
  return isActive
    ? `${name} now uses version ${version}.`
    : `Added version ${version} to ${name}. It is not active. \`slipway templates promote ${name} ${version}\` promotes it.`;
};

/** Derives a valid template name from the folder's name. */
const toTemplateName = (folder: string): string =>
  basename(resolve(folder))
    .replaceAll(/[^a-zA-Z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 32);

const findTemplate = async (client: Client, organization: string, name: string): Promise<Template | undefined> =>
  client.get(`/api/v2/organizations/${organization}/templates/${encodeURIComponent(name)}`).catch((error) => {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  });

type PushTarget = { folder: string; args: PushArguments; organization: string; existing: Template | undefined };

/** Returns the version once its import has succeeded or failed. */
const importVersion = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  { folder, args, organization, existing }: PushTarget,
): Promise<TemplateVersion> => {
  const { archive, fileCount, skippedPaths } = await packFolder(folder);
  using progress = new Progress(input);
  onInterrupt(() => progress[Symbol.dispose]());
  for (const path of skippedPaths) progress.printLine(`${path} is skipped: it is not a file in this folder`);
  progress.setStatus(`uploading ${fileCount} ${fileCount === 1 ? "file" : "files"}`);
  const headers = { "content-type": "application/x-tar" };
  const body = toCountedStream(archive, (sent) =>
    progress.setDetail(`${formatSize(sent)} of ${formatSize(archive.byteLength)}`),
  );
  const { hash } = await client.post("/api/v2/files", body, { headers });
  const { version: name, message } = args.value;
  const version = await client.post(`/api/v2/organizations/${organization}/templateversions`, {
    storage_method: "file",
    file_id: hash,
    user_variable_values: parsePairs("--variable", args.list.variable),
    tags: Object.fromEntries(
      parsePairs("--provisioner-tag", args.list["provisioner-tag"]).map((pair) => [pair.name, pair.value]),
    ),
    ...(existing ? { template_id: existing.id } : {}),
    ...(name === undefined ? {} : { name }),
    ...(message === undefined ? {} : { message }),
  } satisfies CreateTemplateVersion);
  progress.setStatus(`importing ${folder}`);
  const path = `/api/v2/templateversions/${version.id}` as const;
  for await (const { output, stage } of followJobLog(input.clock, client, path)) {
    progress.printLine(output, stage);
  }
  return client.get(path);
};

const activateVersion = async (
  client: Client,
  organization: string,
  name: string,
  existing: Template | undefined,
  { id }: TemplateVersion,
): Promise<Template> => {
  if (!existing) {
    const body = { name, template_version_id: id };
    return client.post(`/api/v2/organizations/${organization}/templates`, body);
  }
  await client.patch(`/api/v2/templates/${existing.id}/versions`, { id });
  return client.get(`/api/v2/templates/${existing.id}`);
};
