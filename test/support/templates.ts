// Templates for tests: archives from plain texts, uploads, and imports that are awaited by following their log.
import type { CreateTemplate, Template } from "#schema/templates/template.ts";
import type { CreateTemplateVersion, TemplateVersion } from "#schema/templates/template-version.ts";
import type { Client } from "#src/client.ts";

type Files = Record<string, string>;

/** The smallest template, which starts nothing. */
export const ECHO = "provisioner: echo\nresources:\n  - name: main\n    agents:\n      - name: main\n";

export const createTar = async (files: Files): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await new Bun.Archive(files).bytes());

/** Returns a comment that no other upload contains, so that its file is new. */
export const uniqueText = (): string => `# ${crypto.randomUUID()}\n`;

export const sendFile = (
  client: Client,
  body: Uint8Array | ReadableStream | string,
  type = "application/x-tar",
): Promise<Response> => client.fetch("POST", "/api/v2/files", body, { headers: { "content-type": type } });

/** Uploads the files and returns the file's ID. */
export const uploadFiles = async (client: Client, files: Files): Promise<string> => {
  const response = await sendFile(client, await createTar(files));
  if (!response.ok) throw new Error(`the upload was rejected: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { hash: string }).hash;
};

/** Follows the import's log until the server closes it; returns the lines and the close code. */
export const followImport = async (
  client: Client,
  id: string,
): Promise<{ lines: { id: number; log_level: string; output: string }[]; code: number }> => {
  using socket = await client.socket(`/api/v2/templateversions/${id}/logs?follow`);
  const lines: { id: number; log_level: string; output: string }[] = [];
  for await (const message of socket) lines.push(JSON.parse(message as string));
  return { lines, code: (await socket.closed).code };
};

/** Uploads the files, creates a version and waits until its import has succeeded or failed. */
export const importVersion = async (
  client: Client,
  files: Files | string,
  body: Partial<CreateTemplateVersion> = {},
): Promise<TemplateVersion> => {
  const file_id = await uploadFiles(client, typeof files === "string" ? { "template.yaml": files } : files);
  const created = await client.post<TemplateVersion>("/api/v2/organizations/default/templateversions", {
    storage_method: "file",
    file_id,
    ...body,
  });
  await followImport(client, created.id);
  return client.get<TemplateVersion>(`/api/v2/templateversions/${created.id}`);
};

let templateCount = 0;

/** Creates a template with this manifest, ready for use. */
export const makeTemplate = async (
  client: Client,
  files: Files | string = ECHO,
  body: Partial<CreateTemplate> = {},
): Promise<Template> => {
  const version = await importVersion(client, files);
  if (version.job.status !== "succeeded") throw new Error(`the import has failed: ${version.job.error}`);
  templateCount += 1;
  return client.post<Template>("/api/v2/organizations/default/templates", {
    name: `template-${templateCount}`,
    template_version_id: version.id,
    ...body,
  });
};
