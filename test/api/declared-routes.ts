// The routes of the server as they are declared, without a server that listens. Used by what is printed and tested from declarations.
import { loadConfig } from "#base/config.ts";
import { createApp } from "#src/api/app.ts";
import { openContext } from "#src/context/open.ts";
import { tempDirectory } from "#test/support/server.ts";

/** One route of Elysia. */
export type DeclaredRoute = { readonly method: string; readonly path: string; readonly hooks: object };

/** Returns every route, those that the OpenAPI document leaves out included. */
export const readRoutes = async (): Promise<readonly DeclaredRoute[]> => {
  using place = tempDirectory();
  const env = { SLIPWAY_DATA_DIR: place.path, SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock" };
  const { config } = loadConfig({ argv: [], env, readFile: () => "" });
  await using context = await openContext({ config });
  return createApp(context).routes;
};
