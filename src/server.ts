// Context -> a listening server. Requests pass the gate (Host, Origin), are identified, and reach Elysia; whatever goes wrong on
// the way becomes the generic error body. Stopping ends what is open in order.

import type { Server } from "bun";
import { type AnyElysia, Elysia } from "elysia";
import { accessUrl, allowedHosts } from "#base/config.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { parseJson, UPLOAD_LIMIT } from "./api/body.ts";
import { remember } from "./api/caller.ts";
import { errorResponse, pathOf } from "./api/errors.ts";
import { type AllowedHosts, checkHost, checkOrigin } from "./api/gate.ts";
import { health } from "./api/health.ts";
import { credentialOf, identify } from "./api/identify.ts";
import { api } from "./api/index.ts";
import { methodsByPath } from "./api/methods.ts";
import { swaggerPage } from "./api/swagger.ts";
import type { Context } from "./context.ts";

export interface RunningServer {
  readonly url: URL;
  /** Refuses new work, ends streams with 1001, waits for open requests, and stops listening. */
  stop(reason: string): Promise<void>;
}

/** All routes as one Elysia app; it does not listen. */
const createApp = (ctx: Context): AnyElysia => {
  const app: AnyElysia = new Elysia({ normalize: true })
    .onError(({ error, request, code }) =>
      errorResponse(code === "NOT_FOUND" ? noRoute(request, error) : error, request),
    )
    .onParse(({ request }) => parseJson({ request }))
    .use(routes(ctx))
    .use(swaggerPage(() => routes(ctx)));
  const methodsOf = methodsByPath(app);
  const noRoute = (request: Request, error: unknown): unknown => {
    const methods = methodsOf(pathOf(request.url));
    if (methods.length === 0) return error;
    return new AppError("method_not_allowed", "Method not allowed.", {
      detail: `This route takes ${methods.join(", ")}.`,
    });
  };
  return app;
};

/** Everything the OpenAPI document describes. */
const routes = (ctx: Context) => new Elysia().use(health(ctx)).use(api(ctx));

/** Listens on the configured address (port 0 = any) and answers until stopped. */
export const startServer = async (ctx: Context): Promise<RunningServer> => {
  const app = createApp(ctx);
  let hosts: AllowedHosts = new Set();
  const { host, port } = ctx.config.address;

  const handle = async (request: Request): Promise<Response> => {
    try {
      checkHost(request, hosts);
      const credential = credentialOf(request);
      checkOrigin(request, credential, hosts);
      if (isProbe(request)) return await app.fetch(request);
      return await ctx.requests.run(request, async () => {
        remember(request, await identify(credential, ctx.store, ctx.clock));
        return app.fetch(request);
      });
    } catch (error) {
      return errorResponse(error, request);
    }
  };

  const server: Server<never> = Bun.serve({
    hostname: host.replace(/^\[|\]$/g, ""),
    port,
    fetch: handle,
    websocket: ctx.sockets.websocket as never,
    idleTimeout: 30,
    // Above the largest route limit: the routes count for themselves and answer with the specified words.
    maxRequestBodySize: UPLOAD_LIMIT + 1024 * 1024,
    error: (error) => {
      log("http").error("unhandled", { error });
      return errorResponse(error, new Request("http://localhost/"));
    },
  });
  ctx.sockets.attach(server as never);
  ctx.requests.attach(server);
  ctx.accessUrl = accessUrl(ctx.config, server.port as number);
  hosts = new Set(allowedHosts(ctx.config).map((name) => name.toLowerCase()));
  await ctx.started();

  return {
    url: listeningUrl(host, server.port as number),
    async stop(reason) {
      ctx.draining = true;
      ctx.streams.endAll();
      ctx.sockets.closeAll(reason);
      await ctx.requests.drain();
      await ctx.drain();
      await server.stop(true);
    },
  };
};

/** Health checks are answered also while the server is overloaded or stopping. */
const isProbe = (request: Request): boolean => {
  const path = pathOf(request.url);
  return path === "/healthz" || path === "/readyz";
};

const listeningUrl = (host: string, port: number): URL =>
  new URL(`http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}/`);
