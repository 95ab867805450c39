// Pagination of lists: `limit`, `offset` and the cursor `after_id`, the same everywhere (facts/platform 3.1).
import { t } from "elysia";
import { invalid } from "#base/errors.ts";
import type { Page } from "#schema/page.ts";

/** Row limit when a client asks for everything; longer lists must be paged. */
const MAX_ROWS = 10_000;

// Has no bounds in the schema, because Elysia would report violations without the parameter's name.
export const pageQuery = {
  limit: t.Optional(t.Integer({ description: "The maximum number of rows to return. 0 or absent returns all." })),
  offset: t.Optional(t.Integer({ description: "The number of rows to skip." })),
  after_id: t.Optional(t.String({ format: "uuid", description: "Return rows after the one with this ID." })),
};

/** Search words and terms; `keys` describes the terms. */
export const searchQuery = (keys: string) => t.Optional(t.String({ maxLength: 4096, description: keys }));

/** Returns the requested page with defaults filled in. Throws 400 for a negative number. */
export const toPage = (query: { limit?: number; offset?: number }): Page => {
  const { limit = 0, offset = 0 } = query;
  const negative = Object.entries({ limit, offset }).filter(([, value]) => value < 0);
  if (negative.length > 0) {
    throw invalid(
      "Query parameters have invalid values.",
      negative.map(([field]) => ({ field, detail: "must be 0 or more" })),
    );
  }
  return { limit: Math.min(limit || MAX_ROWS, MAX_ROWS), offset: Math.min(offset, Number.MAX_SAFE_INTEGER) };
};
