// The shape of what Terraform has made, as a worker tells it: that of a template.yaml without what only people are held to (names, lengths,
// nothing unknown), because an import or build of the server's own is not held to it either. How much there may be is bounded by the message.
import type { TSchema } from "@sinclair/typebox";

const BOUNDS = new Set(["additionalProperties", "pattern", "format", "minLength", "maxLength", "minItems", "maxItems"]);

/** The same schema, of which only types, required members and literal values count. */
export const opened = <Schema extends TSchema>(schema: Schema): Schema => {
  const copy: TSchema = { ...schema };
  for (const key of BOUNDS) delete copy[key];
  if (copy.properties) copy.properties = each(copy.properties as Record<string, TSchema>);
  if (copy.patternProperties) copy.patternProperties = each(copy.patternProperties as Record<string, TSchema>);
  if (copy.items) copy.items = opened(copy.items as TSchema);
  if (copy.anyOf) copy.anyOf = (copy.anyOf as TSchema[]).map(opened);
  return copy as Schema;
};

const each = (schemas: Readonly<Record<string, TSchema>>): Record<string, TSchema> =>
  Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, opened(one)]));
