// Pages of lists: `limit`, `offset` and the cursor `after_id`, the same everywhere (facts/platform 3.1).
import { t } from "elysia";

/** What "everything" means: more rows than this come in pages. */
const EVERYTHING = 10_000;

export const pageQuery = {
  limit: t.Optional(t.Integer({ minimum: 0, maximum: EVERYTHING, description: "0 or absent: everything." })),
  offset: t.Optional(t.Integer({ minimum: 0, maximum: 2_147_483_647, description: "Rows to leave out." })),
  after_id: t.Optional(t.String({ format: "uuid", description: "Begin after the row with this id." })),
};

export type Page = { limit: number; offset: number };

/** The page a query asks for, with what it left out filled in. */
export const pageOf = (query: { limit?: number; offset?: number }): Page => ({
  limit: query.limit || EVERYTHING,
  offset: query.offset ?? 0,
});
