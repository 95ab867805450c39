// Converts the result of a template import to the text that a worker sends to the server in chunks, and back. The server accepts only
// members that its own imports produce.

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

/** Maximum length of the text: a manifest of 4 MiB, and modules of 20 MiB in base64. */
export const MAX_IMPORT_CHARS = 36 * 1024 * 1024;

const TextMap = t.Record(t.String(), t.String());
const NameList = t.Array(t.String({ maxLength: 4096 }), { maxItems: 4096 });

/** Omits `cache_file`. A worker could name any file of the deployment in it, and a build would send that file to a worker. */
const TerraformSchema = t.Object({
  program: t.String({ maxLength: 64 }),
  version: t.String({ maxLength: 64 }),
  is_dynamic: t.Boolean(),
  has_external_agent: t.Boolean(),
  has_snapshot_module: t.Optional(t.Boolean()),
  needs: NameList,
  names: NameList,
  targets: NameList,
  workspace_tags: TextMap,
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

/** Returns only the members that the schema declares. Other members of a worker's message are ignored. */
const pickDeclared = <T extends object>({ properties }: TObject, value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(properties, name))) as T;

/** Throws ProvisionError if the text is not the result of an import. */
export const parseImport = (text: string | null): TerraformImport => {
  const value: unknown = text === null ? undefined : parse(text);
  if (!importCheck.Check(value)) {
    throw new ProvisionError("The worker returned an invalid template.");
  }
  const { manifest: reported, cache } = value as { manifest: TerraformManifest; cache: string | null };
  const manifest = {
    ...pickDeclared(ManifestSchema, reported),
    terraform: pickDeclared(TerraformSchema, reported.terraform),
  };
  if (cache === null) return { manifest, cache: undefined };
  return { manifest, cache: { archive: new Uint8Array(Buffer.from(cache, "base64")), leftOut: [] } };
};

/** A manifest of the maximum size has fewer values. */
const MAX_VALUES = 500_000;

const parse = (text: string): unknown => tryParseJson(text, { maxValues: MAX_VALUES });
