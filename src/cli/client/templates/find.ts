// Finds templates by name, for the commands that take one.
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { ApiError, type Client } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { canPrompt, promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

const NO_TEMPLATE_MESSAGE =
  "there are no templates yet. A Docker template appears once the server can reach a Docker Engine (setting docker_host; check with `slipway doctor`). Create your own with `slipway templates push FOLDER`";

/** Returns the template with this name; prompts on a terminal if there are several. */
const promptForTemplate = async (input: VerbInput, client: Client, name: string | undefined): Promise<Template> => {
  const names = name === undefined && canPrompt(input) ? await listTemplateNames(client) : [];
  const hasSeveral = names.length > 1;
  return getTemplate(
    client,
    hasSeveral ? await promptIfMissing(input, undefined, "Template", async () => names) : name,
  );
};

/** The source of a new workspace in its request: the template, or the version of its preset if one is named. */
type WorkspaceSource =
  | { readonly template_id: string }
  | { readonly template_version_id: string; readonly template_version_preset_id: string };

type TemplateChoice = {
  readonly template: string | undefined;
  readonly preset: string | undefined;
  readonly parameters: readonly { readonly name: string; readonly value: string }[];
};

/** Returns the template and preset from the options, or the only template, or prompts for one. Throws if either does not exist. */
export const chooseTemplate = async (
  input: VerbInput,
  client: Client,
  { template: name, preset, parameters }: TemplateChoice,
): Promise<WorkspaceSource> => {
  const template = await promptForTemplate(input, client, name);
  if (preset === undefined) return { template_id: template.id };
  const template_version_preset_id = await getPreset(client, template, preset, parameters);
  return { template_version_id: template.active_version_id, template_version_preset_id };
};

/** Returns the named template, or prompts for one on a terminal. Throws UsageError before any request. */
export const selectTemplate = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<Template>) => {
  const word = takeOneWord(input, words, "the template");
  return async (client) =>
    getTemplate(client, await promptIfMissing(input, word, "Template", () => listTemplateNames(client)));
};

/** The versions of a template, newest first. */
export const listVersions = async (
  client: Client,
  { id }: Template,
  includesArchived: boolean,
): Promise<TemplateVersion[]> => {
  const query = new URLSearchParams({ include_archived: String(includesArchived), limit: "100" });
  const versions = await client.get(`/api/v2/templates/${id}/versions?${query}`);
  return versions.toSorted((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
};

/** Returns the version with this name, or the active one without a name. Throws VerbFailure if it does not exist. */
export const getVersion = (
  client: Client,
  { id, name, active_version_id }: Template,
  version: string | undefined,
): Promise<TemplateVersion> => {
  if (version === undefined) return client.get(`/api/v2/templateversions/${active_version_id}`);
  const path = `/api/v2/templates/${id}/versions/${encodeURIComponent(version)}` as const;
  return client.get(path).catch((error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw new VerbFailure(`${name} has no version ${version}; \`slipway templates versions ${name}\` shows them`);
  });
};

export const listTemplateNames = async (client: Client): Promise<string[]> =>
  (await client.get("/api/v2/templates")).map((one) => one.name);

/** Returns the template with this name, or the only one without a name. Throws VerbFailure with a list of templates. */
export const getTemplate = async (client: Client, name: string | undefined): Promise<Template> => {
  const templates = await client.get("/api/v2/templates");
  const nameList = templates.map((one) => toPlainLine(one.name)).join(", ");
  const matches = name === undefined ? templates : templates.filter((one) => one.name === name);
  const [first, ...more] = matches;
  if (templates.length === 0) throw new VerbFailure(NO_TEMPLATE_MESSAGE);
  if (!first) {
    const names = templates.map((one) => one.name);
    throw await toUnknownNameError("template", name ?? "", () => names, "slipway templates list");
  }
  if (more.length > 0 && name === undefined)
    throw new VerbFailure(`specify a template with --template, one of ${nameList}`);
  if (more.length > 0) throw new VerbFailure(`several organizations have a template named ${name}`);
  return first;
};

/** Returns the ID of a preset of the active version. Throws VerbFailure if none exists, or if an explicitly given value contradicts it. */
const getPreset = async (
  client: Client,
  { active_version_id, name }: Template,
  preset: string,
  given: readonly { readonly name: string; readonly value: string }[] = [],
): Promise<string> => {
  const presets = await client.get(`/api/v2/templateversions/${active_version_id}/presets`);
  const found = presets.find((one) => one.name === preset);
  if (found) {
    const presetValues = new Map(found.parameters.map((one) => [one.name, one.value]));
    const conflict = given.find((one) => presetValues.has(one.name) && presetValues.get(one.name) !== one.value);
    if (!conflict) return found.id;
    throw new VerbFailure(
      `The preset ${preset} sets ${conflict.name} to ${presetValues.get(conflict.name)}. Leave out --preset, or --parameter ${conflict.name}=${conflict.value}.`,
    );
  }
  const names = presets.map((one) => one.name).join(", ");
  throw new VerbFailure(`the template ${name} has ${names ? `the presets ${names}` : "no presets"}, not ${preset}`);
};
