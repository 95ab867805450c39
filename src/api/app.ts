// All routes as one Elysia app: the API, its OpenAPI document and the pages. Loaded and built while the server is already listening
// (src/server.ts), because loading the routes takes half of the startup time.
import { type AnyElysia, Elysia } from "elysia";
import { AppError } from "#base/errors.ts";
import type { Metrics } from "#base/metrics.ts";
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { readAppearance } from "#domain/deployment/appearance.ts";
import { BEGINNING, SIGNED_OUT_PAGES } from "#src/web/app/shell/first-data.ts";
import { applyBranding, type Face } from "#src/web/branding.ts";
import { loadWeb } from "#src/web/load.ts";
import { PAGES, REDIRECTS, ROOT_FILES } from "#src/web/pages.ts";
import { agentProgramFiles } from "./agents/programs.ts";
import { type Attempt, rememberBody } from "./audit/rejections.ts";
import { chatDesktop } from "./chats/desktop.ts";
import { experimentalChats } from "./chats/index.ts";
import type { ApiContext } from "./context.ts";
import { health } from "./health.ts";
import { withValidators } from "./http/answers/answer-validators.ts";
import { isMismatch } from "./http/answers/response-mismatch.ts";
import { NO_BODY, readBody } from "./http/body/body.ts";
import { BodyReaders } from "./http/body/body-shape.ts";
import { isCompat, type UserCaller } from "./http/caller.ts";
import { swaggerPage } from "./http/document/swagger.ts";
import { errorResponse, getPath } from "./http/errors.ts";
import { preloadInitialData } from "./http/first-answers.ts";
import { Operations, parseVariables } from "./http/operations.ts";
import { loadOnce, webPages } from "./http/pages.ts";
import { addRoutes, routes } from "./http/routes.ts";
import type { LoadInitialData } from "./http/streamed-page.ts";
import { api } from "./index.ts";
import { rememberRoute } from "./metrics/requests.ts";
import { oauth2Protocol } from "./oauth2/protocol.ts";
import { derp } from "./tailnet/derp.ts";
import { experimentalSkills } from "./users/skills.ts";
import { pageLinks } from "./workspaces/page-links.ts";

type AppContext = ApiContext & { readonly metrics: Metrics | undefined };

/** Loads the files of the pages. A server that runs from source builds them, once for all servers of the process. */
const loadWebFiles = loadOnce(loadWeb);

const operationsByApp = new WeakMap<AnyElysia, Operations>();

/** Collects the declared operations of an app, once. */
export const collectOperations = (app: AnyElysia): Operations => {
  const operations = operationsByApp.get(app) ?? new Operations(app.routes);
  operationsByApp.set(app, operations);
  return operations;
};

/** Returns the change that a request was about to make, if its operation declares one. */
const findAttempt = (operations: Operations, { method, url }: Request): Attempt | undefined => {
  const operation = operations.find(method, getPath(url));
  const target = operation?.declared.audit;
  return target && { target, params: parseVariables(operation, getPath(url)) };
};

/** Creates the Elysia app with all routes; it does not listen. `count` counts the requests of a page and throws when there are too many. */
export const createApp = (
  ctx: AppContext,
  count: (request: Request, caller: UserCaller) => void = () => {},
): AnyElysia => {
  // By default, Elysia searches for the path after the eleventh character, but in `http://nas/` the first slash comes before that (rule
  // HT-1). With `false`, it searches after the seventh, which is wrong for `https://`. With TLS, the default applies, and hosts of one or
  // two characters are rejected.
  const standardHostname = ctx.config.tls_cert_file !== undefined;
  const base: AnyElysia = new Elysia({ normalize: true, handler: { standardHostname } })
    .headers(COMMON_HEADERS)
    .onError(({ error, request, code, route, set }) => {
      if (code === "NOT_FOUND") return respondUnrouted(request, error);
      if (isMismatch(error)) {
        set.status = operations.findSuccessStatus(request.method, getPath(request.url), isCompat(request)) ?? 200;
        return ctx.requests.mismatches.answer(error, { request, route, status: set.status });
      }
      const response = errorResponse(error, request);
      ctx.refused.note(request, response.status, () => findAttempt(operations, request));
      return response;
    })
    .use(rememberRoute(ctx.metrics))
    .onParse(async ({ request, route }) => {
      const declared = operations.findOptions(request.method, route);
      const body = await readBody(request, declared);
      if (body === NO_BODY) return bodies.readEmpty(request.method, route);
      bodies.read(request.method, route, body);
      if (declared?.audit?.needsBody) rememberBody(request, body);
      return body;
    });
  const loadBrand = async (): Promise<Face> => {
    const { application_name, logo_url } = await readAppearance(ctx);
    return { name: application_name, logo: logo_url };
  };
  const preloadPage = preloadInitialData({
    ctx,
    beginning: BEGINNING,
    count,
    ask: async (request) => app.fetch(request),
  });
  /** Preloads data into a page, except for sign-in pages, whose visitors are not signed in. */
  const preload = (request: Request): LoadInitialData | undefined =>
    getPath(request.url) in SIGNED_OUT_PAGES ? undefined : preloadPage(request);
  const routeDeclarations = documentedRoutes(ctx)
    .use(experimentalChats(ctx))
    .use(experimentalSkills(ctx))
    .use(oauth2Protocol(ctx))
    .use(swaggerPage(() => addRoutes(new Elysia(), documentedRoutes(ctx)), loadWebFiles))
    .use(pageLinks(ctx))
    .use(
      webPages(
        { pages: PAGES, roots: ROOT_FILES, redirects: REDIRECTS },
        loadWebFiles,
        applyBranding(loadBrand),
        preload,
      ),
    );
  const app: AnyElysia = addRoutes(base, routeDeclarations, withValidators);
  const operations = collectOperations(app);
  const bodies = new BodyReaders(app.routes);
  const respondUnrouted = (request: Request, error: unknown): Response => {
    const methods = operations.listMethods(getPath(request.url)).join(", ");
    if (methods === "") return errorResponse(error, request);
    const refusal = new AppError("method_not_allowed", "Method not allowed.", {
      detail: `This route takes ${methods}.`,
    });
    return errorResponse(refusal, request, { allow: methods });
  };
  return app;
};

/** All routes that the OpenAPI document describes. */
const documentedRoutes = (ctx: AppContext): AnyElysia =>
  routes().use(health(ctx)).use(agentProgramFiles(ctx)).use(derp(ctx)).use(api(ctx)).use(chatDesktop(ctx));
