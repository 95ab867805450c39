// Creates a template version from an upload or a built-in template, which starts its import.
import { AppError, forbidden, invalid, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { findFile } from "#db/templates/files.ts";
import { findTemplate } from "#db/templates/templates.ts";
import { openVariables, sealVariables } from "#db/templates/variables.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import type { OrganizationRow } from "#db/users/organizations.ts";
import type { CreateTemplateVersion } from "#schema/templates/template-version.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { importTags } from "#src/provisioners/external/tags.ts";
import { readTerraformSource } from "#src/provisioners/terraform/source.ts";
import { EXAMPLES } from "#src/starter/examples.ts";
import { canManageTemplate, canManageTemplates } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { canReadFile, findOrInsertFile } from "../templates/uploads.ts";

// Generates a name for a version without one, such as eager_otter7: easy to say and unlikely to be taken.
const ADJECTIVE_LIST =
  "able bold brave brisk calm clever cosy daring eager fair fleet fond gentle glad happy jolly keen kind lively lucky merry mild neat nimble proud quick quiet ready sharp sunny warm wise";
const NOUN_LIST =
  "badger bear beaver crane deer dove falcon finch fox gecko hare heron ibex jay koala lark lynx marten mole newt otter owl panda puffin raven robin seal stork swan tern vole wren";

const ADJECTIVES = ADJECTIVE_LIST.split(" ");
const NOUNS = NOUN_LIST.split(" ");

const makeVersionName = (): string => {
  const bytes = Buffer.from(uuid().replaceAll("-", ""), "hex");
  const pick = (words: readonly string[], index: number): string =>
    words[(bytes[index] as number) % words.length] as string;
  return `${pick(ADJECTIVES, 0)}_${pick(NOUNS, 1)}${bytes.readUInt16BE(2) % 1000}`;
};

/** Returns the new version's ID; its job is pending or already running. */
export const createVersion = async (
  ctx: DomainContext,
  caller: UserCaller,
  organization: OrganizationRow,
  body: CreateTemplateVersion,
): Promise<string> => {
  const template = body.template_id
    ? await ctx.store.get(findTemplate({ id: body.template_id.toLowerCase() }))
    : undefined;
  if (!(template ? canManageTemplate(caller, template) : canManageTemplates(caller, organization.id))) {
    throw forbidden("Only template administrators can create template versions.");
  }
  if (body.template_id && template?.organization_id !== organization.id) throw notFound();
  const newValues = toVariables(body.user_variable_values ?? []);
  const before = template ? await loadActiveValues(ctx, template.active_version_id) : {};
  const variable_values = { ...before, ...newValues };
  const id = uuid();
  const file_id = await findUploadedFile(ctx, caller, body);
  if (!canManageTemplates(caller, organization.id)) await rejectTerraform(ctx, file_id);
  ctx.versions.expect(id, template?.id ?? id);
  await ctx.versions.ask(id, "create", {
    job_id: uuid(),
    organization_id: organization.id,
    template_id: template?.id ?? null,
    name: body.name || makeVersionName(),
    message: body.message ?? "",
    file_id,
    tags: await resolveTags(ctx, organization.id, file_id, body),
    sealed_variable_values: sealVariables(ctx.encryption, id, variable_values),
    created_by: caller.user_id,
  });
  return id;
};

/** Returns the variable values of the template's active version, because secret values cannot be read and entered again. */
const loadActiveValues = async (ctx: DomainContext, id: string): Promise<Record<string, string>> => {
  const version = await ctx.store.get(findTemplateVersion({ id }));
  return version ? openVariables(ctx.encryption, version) : {};
};

/**
 * Rejects Terraform from users who may manage the template only through its access list: they are ordinary members, and a plan runs code as
 * the server's user. Unreadable uploads are rejected too (rule TF-34).
 */
const rejectTerraform = async (ctx: DomainContext, file_id: string): Promise<void> => {
  if (ctx.config.allow_terraform_for_listed_admins || !(await isTerraform(ctx, file_id, true))) return;
  throw forbidden(
    "Terraform runs a template's code as the server's user, so only template administrators of the organization can import it. The setting allow_terraform_for_listed_admins also allows administrators of this template to.",
  );
};

/** Returns the tags that a worker needs for the import. */
const resolveTags = async (
  ctx: DomainContext,
  organization_id: string,
  file_id: string,
  { tags }: CreateTemplateVersion,
): Promise<Record<string, string>> => {
  const requested = { scope: "organization", owner: "", ...tags };
  const workerTags = importTags(requested, organization_id, ctx.config.terraform_workers);
  const isUnchanged = Object.keys(workerTags).length === Object.keys(requested).length;
  return isUnchanged || !(await isTerraform(ctx, file_id, false)) ? requested : workerTags;
};

/** `unreadable` is the result for an upload that cannot be read. */
const isTerraform = async ({ store, blobs }: DomainContext, file_id: string, unreadable: boolean): Promise<boolean> => {
  const file = await store.get(findFile({ id: file_id }));
  if (!file) return false;
  const archive = { path: await blobs.getPath(file.hash), mimetype: file.mimetype };
  return readTerraformSource(archive).then(
    (source) => source !== undefined,
    () => unreadable,
  );
};

const findUploadedFile = async (
  ctx: DomainContext,
  caller: UserCaller,
  body: CreateTemplateVersion,
): Promise<string> => {
  const { file_id, example_id } = body;
  if ((file_id === undefined) === (example_id === undefined)) {
    const detail = "exactly one of file_id and example_id must be given";
    throw invalid("Validation failed.", [
      { field: "file_id", detail },
      { field: "example_id", detail },
    ]);
  }
  if (example_id !== undefined) return storeExample(ctx, example_id, caller.user_id);
  const file = await ctx.store.get(findFile({ id: (file_id as string).toLowerCase() }));
  if (!file || !(await canReadFile(ctx.store, caller, file)))
    throw invalidField("file_id", "is not a file you uploaded");
  return file.id;
};

/** Returns the upload of a built-in template for this user. Rejects with 400 for an unknown one. */
export const storeExample = async (
  ctx: Pick<DomainContext, "blobs" | "store" | "clock">,
  example_id: string,
  user_id: string,
): Promise<string> => {
  const example = EXAMPLES.get(example_id);
  if (!example) throw invalidField("example_id", `must be one of ${[...EXAMPLES.keys()].join(", ")}`);
  return storeArchive(ctx, example.archive(), user_id);
};

/** Returns the upload of an archive created by the server, for this user. */
export const storeArchive = async (
  ctx: Pick<DomainContext, "blobs" | "store" | "clock">,
  bytes: Uint8Array,
  user_id: string,
  mimetype = "application/zip",
): Promise<string> => {
  const { hash, size } = await ctx.blobs.put(streamBytes(bytes));
  const { id } = await findOrInsertFile(ctx.store, {
    id: uuid(),
    hash,
    size,
    mimetype,
    created_by: user_id,
    created_at: ctx.clock.now(),
  });
  return id;
};

async function* streamBytes(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const toVariables = (given: readonly { name: string; value: string }[]): Record<string, string> => {
  const values = new Map(given.map(({ name, value }) => [name, value]));
  if (values.size < given.length) throw new AppError("invalid", "A variable is set twice.");
  return Object.fromEntries(values);
};
