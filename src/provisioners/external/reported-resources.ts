// Derives the schema of Terraform resources that a worker reports from the schema of template.yaml. Omits the rules for template authors
// about names, lengths and unknown fields, because they do not apply to the server's own imports and builds either. The size of the message
// limits the amount of data.
import type { TSchema } from "@sinclair/typebox";

const RESTRICTIONS = new Set([
  "additionalProperties",
  "pattern",
  "format",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
]);

/** Returns the schema with only its types, required members and literal values. */
export const toOpenSchema = <Schema extends TSchema>(schema: Schema): Schema => {
  const copy: TSchema = { ...schema };
  for (const key of RESTRICTIONS) delete copy[key];
  if (copy.properties) copy.properties = toOpenSchemas(copy.properties as Record<string, TSchema>);
  if (copy.patternProperties) copy.patternProperties = toOpenSchemas(copy.patternProperties as Record<string, TSchema>);
  if (copy.items) copy.items = toOpenSchema(copy.items as TSchema);
  if (copy.anyOf) copy.anyOf = (copy.anyOf as TSchema[]).map(toOpenSchema);
  return copy as Schema;
};

const toOpenSchemas = (schemas: Readonly<Record<string, TSchema>>): Record<string, TSchema> =>
  Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, toOpenSchema(one)]));
