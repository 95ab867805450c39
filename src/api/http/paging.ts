// Pages of lists: `limit`, `offset` and the cursor `after_id`, the same everywhere (facts/platform 3.1).
import { t } from "elysia";
import { invalid } from "#base/errors.ts";
import type { Page } from "#schema/page.ts";

/** What "everything" means: more rows than this come in pages. */
const EVERYTHING = 10_000;

// Without bounds in the schema: Elysia reports those without the name of the parameter.
export const pageQuery = {
  limit: t.Optional(t.Integer({ description: "0 or absent: everything." })),
  offset: t.Optional(t.Integer({ description: "Number of rows to skip." })),
  after_id: t.Optional(t.String({ format: "uuid", description: "Start after the row with this id." })),
};

/** The words and terms of a search; `keys` says which. */
export const searchQuery = (keys: string) => t.Optional(t.String({ maxLength: 4096, description: keys }));

/** The page a query asks for, with what it left out filled in. Throws 400 for a negative number. */
export const toPage = (query: { limit?: number; offset?: number }): Page => {
  const { limit = 0, offset = 0 } = query;
  const negative = Object.entries({ limit, offset }).filter(([, value]) => value < 0);
  if (negative.length > 0) {
    throw invalid(
      "Query parameters have invalid values.",
      negative.map(([field]) => ({ field, detail: "must be 0 or more" })),
    );
  }
  return { limit: Math.min(limit || EVERYTHING, EVERYTHING), offset: Math.min(offset, Number.MAX_SAFE_INTEGER) };
};
