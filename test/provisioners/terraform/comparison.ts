// Converts mapped resources to the format of a template's expected.json, without IDs, tokens and addresses.
import type { MappedParameter, MappedResource } from "#src/provisioners/terraform/mapping/mapped.ts";

export const TEMPLATES = ["minimal", "parameters", "apps-and-scripts", "metadata-cost", "presets-prebuilds"] as const;

const HERE = new URL("./", import.meta.url).pathname;

export const templateFolder = (name: string): string => `${HERE}templates/${name}`;

type ExpectedPlan = { resources: unknown; daily_cost: number };
export type ExpectedTemplate = {
  parameters: unknown;
  presets: unknown;
  external_auth: unknown;
  tags?: unknown;
  variables?: { name: string; type: string; default_value: string; sensitive: boolean; required: boolean }[];
  has_ai_task: boolean;
  has_external_agent: boolean;
  planned: { start: ExpectedPlan; stop: ExpectedPlan };
  built: { start: unknown; stop: unknown };
};

export const loadExpected = (name: string): Promise<ExpectedTemplate> =>
  Bun.file(`${templateFolder(name)}/expected.json`).json();

export const loadRecordedText = (name: string, file: string): Promise<string> =>
  Bun.file(`${HERE}recorded/${name}/${file}`).text();
export const loadRecorded = async <T>(name: string, file: string): Promise<T> =>
  JSON.parse(await loadRecordedText(name, file)) as T;

/** `tokenText` replaces each token, as in expected.json. */
export const normalizeResources = (resources: readonly MappedResource[], tokenText: string): unknown =>
  resources.map((resource) => ({
    ...resource,
    agents: resource.agents.map((agent) => ({
      ...agent,
      token: agent.token === undefined ? "<unknown>" : tokenText,
      apps: agent.apps.map(({ id: _id, ...app }) => app),
    })),
  }));

export const normalizeParameters = (parameters: readonly MappedParameter[]): unknown =>
  parameters.map(({ styling: _styling, value: _value, address: _address, is_integer: _is_integer, ...rest }) => rest);
