// A link that opens the form filled in: /new?template=node&preset=Full&name=web&param.region=eu. Pure.

export type Filled = {
  readonly template?: string;
  readonly name?: string;
  readonly preset?: string;
  readonly parameters: Readonly<Record<string, string>>;
};

const PARAMETER = "param.";

/** What the query of an address fills in; what it does not know is left out. */
export const readLink = (query: string): Filled => {
  const asked = new URLSearchParams(query);
  const parameters: Record<string, string> = {};
  for (const [name, value] of asked) if (name.startsWith(PARAMETER)) parameters[name.slice(PARAMETER.length)] = value;
  const [template, name, preset] = ["template", "name", "preset"].map((one) => asked.get(one) ?? undefined);
  return { template, name, preset, parameters };
};

/** The path with its query. Parameters that a preset sets are in it already. */
export const linkTo = ({ template, preset, parameters }: Filled): string => {
  const query = new URLSearchParams();
  if (template) query.set("template", template);
  if (preset) query.set("preset", preset);
  for (const [name, value] of Object.entries(parameters)) query.set(`${PARAMETER}${name}`, value);
  return `/new${query.size > 0 ? `?${query}` : ""}`;
};
