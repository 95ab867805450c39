// The result of a template import on its way from a worker to the server: one text, sent in chunks. The server accepts only the shape that
// its own imports produce.

import { Type as t } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { tryParseJson } from "#base/json/read.ts";
import { ManifestParameter, ManifestPreset, ManifestResource, ManifestVariable } from "#schema/templates/manifest.ts";
import { ProvisionError } from "../provisioner.ts";
import type { TerraformImport } from "../terraform/import.ts";
import { opened } from "./opened.ts";

/** Characters: a manifest of 4 MiB, and modules of 20 MiB in base64. */
export const FOUND_LIMIT = 36 * 1024 * 1024;

const texts = t.Record(t.String(), t.String());
const names = t.Array(t.String({ maxLength: 4096 }), { maxItems: 4096 });

const Found = t.Object({
  manifest: t.Object({
    provisioner: t.Literal("terraform"),
    parameters: t.Array(opened(ManifestParameter)),
    variables: t.Array(opened(ManifestVariable)),
    presets: t.Array(opened(ManifestPreset)),
    external_auth: t.Array(t.Object({ id: t.String(), optional: t.Optional(t.Boolean()) })),
    ai_task: t.Boolean(),
    resources: t.Array(opened(ManifestResource)),
    stop_resources: t.Array(opened(ManifestResource)),
    terraform: t.Object({
      program: t.String({ maxLength: 64 }),
      version: t.String({ maxLength: 64 }),
      is_dynamic: t.Boolean(),
      has_external_agent: t.Boolean(),
      needs: names,
      names,
      targets: names,
      workspace_tags: texts,
    }),
  }),
  cache: t.Union([t.String(), t.Null()]),
});
const found = TypeCompiler.Compile(Found);

export const foundText = ({ manifest, cache }: TerraformImport): string =>
  JSON.stringify({ manifest, cache: cache ? Buffer.from(cache.archive).toString("base64") : null });

/** Throws ProvisionError for a text that no import produces. */
export const parseImport = (text: string | null): TerraformImport => {
  const value: unknown = text === null ? undefined : parsed(text);
  if (!found.Check(value)) {
    throw new ProvisionError("The worker returned an invalid template.");
  }
  const { manifest, cache } = value as { manifest: TerraformImport["manifest"]; cache: string | null };
  if (cache === null) return { manifest, cache: undefined };
  return { manifest, cache: { archive: new Uint8Array(Buffer.from(cache, "base64")), leftOut: [] } };
};

/** More than a manifest of the maximum size has. */
const MAX_VALUES = 500_000;

const parsed = (text: string): unknown => tryParseJson(text, { maxValues: MAX_VALUES });
