// Query parameters that handlers read as text, because callers send them in more forms than one or the specification wants an error of its
// own words. The OpenAPI document shows each as what it means (facts/platform 3.1).
import { type StringOptions, type TSchema, Type as t } from "@sinclair/typebox";

/** The member of a parameter's schema that holds what the document shows in its place. */
export const SHOWN = "x-shown";

/** What the document shows. `required`: callers of the specification get 400 without it; genuine clients have a default (rule HT-16). */
export type Shown = {
  readonly type: "integer" | "boolean" | "string" | "array";
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly items?: { readonly type: "string"; readonly format?: string };
  readonly required?: true;
  readonly example?: string | number;
};

/** A parameter of this schema that the document shows in other words. */
export const shownAs = <T extends TSchema>(shown: Shown, schema: T) => t.Optional({ ...schema, [SHOWN]: shown } as T);

/** A parameter that the handler reads as text; `checked` is what is refused before the handler is asked. */
export const textQuery = (description: string, shown: Shown, checked: StringOptions = {}) =>
  shownAs(shown, t.String({ ...checked, description }));

/** A boolean; read it with `parseFlag`. */
export const flagQuery = (description: string) =>
  textQuery(description, { type: "boolean" }, { format: "flag", error: "must be true or false" });

/** An id in a log, for `after` and `before`; an empty one counts as left away. */
export const cursorQuery = (description: string) =>
  textQuery(description, { type: "integer" }, { format: "cursor", error: "must be a whole number, 0 or more" });

/** 1, t, true in any letter case; absent and empty are false, as everything else that a flag can be. */
export const parseFlag = (text: string | undefined): boolean => ["1", "t", "true"].includes((text ?? "").toLowerCase());
