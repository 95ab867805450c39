// Creates a template from an example: uploads the version, waits for the import, then creates the template.
import type { Template } from "#schema/templates/template.ts";
import type { TemplateExample, TemplateVariable } from "#schema/templates/template-version.ts";
import { call } from "../../data/api.ts";
import { LogFeed } from "../../data/logs.ts";
import { organizations } from "../../data/session.ts";
import { EDITOR_TEMPLATE, toNewWorkspaceUrl } from "./names.ts";

/** Resolves when the import has ended, whether it succeeded or not. */
const waitForImport = (version_id: string): Promise<void> =>
  new Promise((resolve) => {
    const feed = new LogFeed();
    const path = `/templateversions/${version_id}/logs`;
    const finish = (): void => {
      feed.end();
      resolve();
    };
    feed.follow({ source: "import", path, onEnd: finish });
  });

type Values = Readonly<Record<string, string>>;
/** `missing`: variables that need a value first. */
type ImportResult = { readonly template: Template } | { readonly missing: readonly TemplateVariable[] };

/**
 * Adds the template with an editor in the browser and returns the URL for creating a workspace from it. The template must not exist yet.
 */
export const addEditor = async (): Promise<string> => {
  const examples = (await call("GET /templates/examples")).filter(({ kind }) => kind === EDITOR_TEMPLATE);
  const example = examples.find(({ unavailable }) => unavailable === "");
  if (!example) throw new Error("No template with VS Code can run on this server.");
  const created = await makeExample(example, {});
  if ("missing" in created) throw new Error(`The template ${example.name} needs values. Add it under Templates.`);
  return toNewWorkspaceUrl(created.template);
};

/** Adds the example as a template. Throws with the reason if the import fails. */
export const makeExample = async (
  { id, name, description, icon }: TemplateExample,
  values: Values,
): Promise<ImportResult> => {
  const path = { organization: organizations.value[0]?.id ?? "" };
  const user_variable_values = Object.entries(values).map(([name, value]) => ({ name, value }));
  const body = { example_id: id, user_variable_values };
  const importing = await call("POST /organizations/:organization/templateversions", { path, body });
  await waitForImport(importing.id);
  const versionPath = { path: { templateversion: importing.id } };
  const { job } = await call("GET /templateversions/:templateversion", versionPath);
  if (job.error_code === "REQUIRED_TEMPLATE_VARIABLES") {
    const variables = await call("GET /templateversions/:templateversion/variables", versionPath);
    return { missing: variables.filter(({ required, value }) => required && value === "") };
  }
  if (job.status !== "succeeded") throw new Error(job.error ?? "The import failed.");
  const template = { name: id, display_name: name, description, icon, template_version_id: importing.id };
  return { template: await call("POST /organizations/:organization/templates", { path, body: template }) };
};
