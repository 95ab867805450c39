// The declared scopes of operations, by their names in the OpenAPI document.

import { createApp } from "#src/api/app.ts";
import { declaredBy, type ScopeNeed } from "#src/api/http/operation.ts";
import { contextOf } from "#test/support/seed.ts";
import type { TestServer } from "#test/support/server.ts";

/** `GET /api/v2/users/{user}` -> `user:read`. */
export const declaredScopes = (server: TestServer): ReadonlyMap<string, ScopeNeed> =>
  new Map(
    createApp(contextOf(server) as never).routes.flatMap(({ method, path, hooks }) => {
      const { scope } = declaredBy(hooks);
      return scope === undefined ? [] : [[`${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`, scope] as const];
    }),
  );
