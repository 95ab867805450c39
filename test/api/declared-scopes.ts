// The declared scopes of operations, by their names in the OpenAPI document.

import { createApp } from "#src/api/app.ts";
import { getOptions, type OperationOptions, type ScopeNeed } from "#src/api/http/operation.ts";
import { getContext } from "#test/support/seed.ts";
import type { TestServer } from "#test/support/server.ts";

/** Maps an operation's name, such as `GET /api/v2/users/{user}`, to what its route declares. */
export const readDeclarations = (server: TestServer): ReadonlyMap<string, OperationOptions> =>
  new Map(
    createApp(getContext(server) as never).routes.map(
      ({ method, path, hooks }) => [`${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`, getOptions(hooks)] as const,
    ),
  );

/** Maps an operation's name to its declared scope, such as `user:read`. */
export const readDeclaredScopes = (server: TestServer): ReadonlyMap<string, ScopeNeed> =>
  new Map(
    [...readDeclarations(server)].flatMap(([name, { scope }]) => (scope === undefined ? [] : [[name, scope] as const])),
  );
