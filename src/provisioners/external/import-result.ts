// The result of a template import on its way from a worker to the server: one text, sent in chunks. The server accepts only the shape that
// its own imports produce.

import { type TObject, Type as t } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { tryParseJson } from "#base/json/read.ts";
import {
  type Manifest,
  ManifestParameter,
  ManifestPreset,
  ManifestResource,
  ManifestVariable,
} from "#schema/templates/manifest.ts";
import { ProvisionError } from "../provisioner.ts";
import type { TerraformImport } from "../terraform/import.ts";
import { toOpenSchema } from "./reported-resources.ts";

/** Characters: a manifest of 4 MiB, and modules of 20 MiB in base64. */
export const MAX_IMPORT_CHARS = 36 * 1024 * 1024;

const texts = t.Record(t.String(), t.String());
const names = t.Array(t.String({ maxLength: 4096 }), { maxItems: 4096 });

/** Without `cache_file`, the server's own: it names any file of the deployment, which the worker of a build can then fetch. */
const TerraformSchema = t.Object({
  program: t.String({ maxLength: 64 }),
  version: t.String({ maxLength: 64 }),
  is_dynamic: t.Boolean(),
  has_external_agent: t.Boolean(),
  has_snapshot_module: t.Optional(t.Boolean()),
  needs: names,
  names,
  targets: names,
  workspace_tags: texts,
});

const ManifestSchema = t.Object({
  provisioner: t.Literal("terraform"),
  parameters: t.Array(toOpenSchema(ManifestParameter)),
  variables: t.Array(toOpenSchema(ManifestVariable)),
  presets: t.Array(toOpenSchema(ManifestPreset)),
  external_auth: t.Array(t.Object({ id: t.String(), optional: t.Optional(t.Boolean()) })),
  ai_task: t.Boolean(),
  resources: t.Array(toOpenSchema(ManifestResource)),
  stop_resources: t.Array(toOpenSchema(ManifestResource)),
  terraform: TerraformSchema,
});

const ImportSchema = t.Object({ manifest: ManifestSchema, cache: t.Union([t.String(), t.Null()]) });
type TerraformManifest = Manifest & { readonly terraform: NonNullable<Manifest["terraform"]> };
const importCheck = TypeCompiler.Compile(ImportSchema);

export const formatImport = ({ manifest, cache }: TerraformImport): string =>
  JSON.stringify({ manifest, cache: cache ? Buffer.from(cache.archive).toString("base64") : null });

/** Returns the members that the schema declares. The rest of a worker's message is ignored. */
const pickDeclared = <T extends object>({ properties }: TObject, value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(properties, name))) as T;

/** Throws ProvisionError for a text that no import produces. */
export const parseImport = (text: string | null): TerraformImport => {
  const value: unknown = text === null ? undefined : parsed(text);
  if (!importCheck.Check(value)) {
    throw new ProvisionError("The worker returned an invalid template.");
  }
  const { manifest: said, cache } = value as { manifest: TerraformManifest; cache: string | null };
  const manifest = { ...pickDeclared(ManifestSchema, said), terraform: pickDeclared(TerraformSchema, said.terraform) };
  if (cache === null) return { manifest, cache: undefined };
  return { manifest, cache: { archive: new Uint8Array(Buffer.from(cache, "base64")), leftOut: [] } };
};

/** More than a manifest of the maximum size has. */
const MAX_VALUES = 500_000;

const parsed = (text: string): unknown => tryParseJson(text, { maxValues: MAX_VALUES });
