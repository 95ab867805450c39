// Operations whose answer in matrix-table.ts is that of one server: nodes that are all active have no ready template `local`, and PostgreSQL is
// backed up in its own way.
import { test } from "bun:test";
import { type OfOneServer, testOfOne } from "#test/support/one-server.ts";

const NAMED = "GET /api/v2/organizations/{organization}/templates/{name}";

const OF_ONE: Readonly<Record<string, OfOneServer>> = {
  "POST /api/v2/deployment/backups": "sqlite",
  [NAMED]: "local",
  [`${NAMED}/versions/{version}`]: "local",
};

/** `test` for what an operation answers to those who may. */
export const testOf = (name: string): typeof test => {
  const why = OF_ONE[name];
  return why ? testOfOne(why) : test;
};
