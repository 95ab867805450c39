// Query parameters that handlers read as text, because callers send them in several forms or the specification requires a specific error.
// The OpenAPI document describes each by its meaning (facts/platform 3.1).
import { type StringOptions, type TSchema, Type as t } from "@sinclair/typebox";

/** The schema keyword for the type that the document shows. */
export const DOCUMENTED = "x-shown";

/** What the document shows. `required`: native callers get 400 without it; upstream clients get a default (rule HT-16). */
export type DocumentedType = {
  readonly type: "integer" | "boolean" | "string" | "array";
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly items?: { readonly type: "string"; readonly format?: string };
  readonly required?: true;
  readonly example?: string | number;
};

/** Returns a parameter of this schema that the document describes differently. */
export const documentAs = <T extends TSchema>(documented: DocumentedType, schema: T) =>
  t.Optional({ ...schema, [DOCUMENTED]: documented } as T);

/** Returns a parameter that the handler reads as text; `constraints` are validated before the handler runs. */
export const textQuery = (description: string, documented: DocumentedType, constraints: StringOptions = {}) =>
  documentAs(documented, t.String({ ...constraints, description }));

/** Returns a boolean parameter; read it with `parseFlag`. */
export const flagQuery = (description: string) =>
  textQuery(description, { type: "boolean" }, { format: "flag", error: "must be true or false" });

/** Returns a log ID parameter for `after` and `before`; an empty value means it is absent. */
export const cursorQuery = (description: string) =>
  textQuery(description, { type: "integer" }, { format: "cursor", error: "must be a whole number, 0 or more" });

/** Accepts 1, t, true in any letter case as true; everything else, including absent and empty, is false. */
export const parseFlag = (text: string | undefined): boolean => ["1", "t", "true"].includes((text ?? "").toLowerCase());
