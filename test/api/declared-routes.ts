// Reads the declared routes of the server without listening. Used by generators and tests that work from route declarations.
import { loadConfig } from "#base/config.ts";
import { createApp } from "#src/api/app.ts";
import { listSchemas } from "#src/api/http/answers/answer-validators.ts";
import { type Access, getOptions } from "#src/api/http/operation.ts";
import { openContext } from "#src/context/open.ts";
import { tempDirectory } from "#test/support/server.ts";

/** One Elysia route. */
export type DeclaredRoute = { readonly method: string; readonly path: string; readonly hooks: object };

/** Returns every route, even if the OpenAPI document omits it. */
export const readRoutes = async (): Promise<readonly DeclaredRoute[]> => {
  using temp = tempDirectory();
  const env = { SLIPWAY_DATA_DIR: temp.path, SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock" };
  const { config } = loadConfig({ argv: [], env, readFile: () => "" });
  await using context = await openContext({ config });
  return createApp(context).routes;
};

export type DeclaredAccess = { readonly access: Access; readonly success: number };

/** The name of an operation in the OpenAPI document. */
const toOperationName = ({ method, path }: DeclaredRoute): string => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`;

/** The same routes also exist below /api/experimental; the document shows them once. */
const isDocumented = ({ path }: DeclaredRoute): boolean => !path.startsWith("/api/experimental/");

/** Returns who may call each operation, and the status of its success, by its name in the OpenAPI document. */
export const readDeclaredAccess = (routes: readonly DeclaredRoute[]): ReadonlyMap<string, DeclaredAccess> =>
  new Map(
    routes.filter(isDocumented).flatMap((route) => {
      const { hooks } = route;
      const { access } = getOptions(hooks);
      if (access === undefined) return [];
      const successes = Object.keys(listSchemas(hooks))
        .map(Number)
        .filter((status) => status >= 200 && status < 300);
      const success = successes.length === 0 ? 200 : Math.min(...successes);
      return [[toOperationName(route), { access, success }] as const];
    }),
  );

/** Returns the operations that declare an audit target, by their names in the OpenAPI document. */
export const listAudited = (routes: readonly DeclaredRoute[]): readonly string[] =>
  routes.filter((route) => isDocumented(route) && getOptions(route.hooks).audit).map(toOperationName);

/** Returns the declared example of each operation's body. */
export const readExamples = (routes: readonly DeclaredRoute[]): ReadonlyMap<string, unknown> =>
  new Map(routes.map((route) => [toOperationName(route), getOptions(route.hooks).example]));
