// The declared scopes of operations, by their names in the OpenAPI document.

import { createApp } from "#src/api/app.ts";
import { getOptions, type ScopeNeed } from "#src/api/http/operation.ts";
import { getContext } from "#test/support/seed.ts";
import type { TestServer } from "#test/support/server.ts";

/** `GET /api/v2/users/{user}` -> `user:read`. */
export const readDeclaredScopes = (server: TestServer): ReadonlyMap<string, ScopeNeed> =>
  new Map(
    createApp(getContext(server) as never).routes.flatMap(({ method, path, hooks }) => {
      const { scope } = getOptions(hooks);
      return scope === undefined ? [] : [[`${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`, scope] as const];
    }),
  );
