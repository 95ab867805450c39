// Health checks for monitoring: liveness and readiness.
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { NEXT_STEP } from "#db/engine/damage.ts";
import { type NodeState, Readiness } from "#schema/readiness.ts";
import type { ApiContext } from "./context.ts";
import { operation } from "./http/operation.ts";
import { routes } from "./http/routes.ts";

const tags = ["General"];

/** Answers GET /healthz. */
export const alive = (): Response =>
  new Response("OK", { headers: { "content-type": "text/plain; charset=utf-8", ...COMMON_HEADERS } });

export const health = (ctx: ApiContext) =>
  routes()
    .get("/healthz", alive, {
      response: { 200: t.String({ description: "The text `OK`." }) },
      detail: operation({
        tags,
        operationId: "checkHealth",
        access: "anyone",
        summary: "Check whether the server is alive",
        description: "Returns 200 while the process is running.",
        security: [],
        answers: ["text/plain"],
        placement: "here",
      }),
    })
    .get(
      "/readyz",
      ({ status }) => {
        const problem = ctx.draining ? "The server is stopping." : (explainNotServing(ctx) ?? describeTrouble(ctx));
        const state = getNodeState(ctx);
        return problem === undefined
          ? status(200, { message: formatReady(state), ...state })
          : status(503, { message: problem, ...state });
      },
      {
        response: { 200: Readiness, 503: Readiness },
        detail: operation({
          tags,
          operationId: "checkReadiness",
          access: "anyone",
          summary: "Check whether the server is ready",
          description:
            "Returns 503 while the server starts or stops, while its disk is full or its database is damaged, and while a cluster node serves no requests. A spare node passes all requests on to the active node and is ready when that node is.",
          security: [],
          placement: "here",
        }),
      },
    );

/** Returns why a cluster node is not ready; undefined without a cluster. */
const explainNotServing = ({ cluster }: ApiContext): string | undefined =>
  cluster && cluster.serves_ms <= 0
    ? LEASE_PROBLEMS[cluster.state.standby === "missing" ? "missing" : "other"]
    : undefined;

/** Returns why the database is not ready. */
const describeTrouble = ({ store }: ApiContext): string | undefined => {
  const { trouble } = store;
  if (trouble === undefined) return undefined;
  const since = `since ${toRfc3339(trouble.since)}`;
  if (trouble.kind === "full") return `The disk has been full ${since}: nothing is saved. Free space on it.`;
  const tableList = trouble.tables?.length ? ` (${trouble.tables.join(", ")})` : "";
  return `The database has been damaged ${since}${tableList}. ${NEXT_STEP}`;
};

const LEASE_PROBLEMS = {
  missing: "No synchronous standby of the database is connected, so this node cannot renew its lease.",
  other: "The database does not confirm that this node is the active one.",
} as const;

/** Returns the node's state in the cluster; empty without a cluster. */
const getNodeState = ({ cluster }: ApiContext): Partial<NodeState> => {
  if (!cluster) return {};
  // The lease holder is left out, because this endpoint is public.
  const { holder: _, ...publicState } = cluster.state;
  return publicState;
};

const formatReady = ({ standby }: Partial<NodeState>): string =>
  standby === "missing" ? "Ready, but writes wait: no synchronous standby of the database is connected." : "Ready.";
