// For machines that watch this server: alive, and ready for work.
import { Elysia, t } from "elysia";
import { isStandbyMissing } from "#db/pg/lease.ts";
import type { ApiContext } from "./context.ts";
import { operation } from "./http/operation.ts";
import { Generic } from "./http/responses.ts";

const tags = ["General"];

export const health = (ctx: ApiContext) =>
  new Elysia()
    .get("/healthz", () => new Response("OK", { headers: { "content-type": "text/plain; charset=utf-8" } }), {
      response: { 200: t.String({ description: "The word OK." }) },
      detail: operation({
        tags,
        operationId: "checkHealth",
        summary: "Alive",
        description: "200 as long as the process answers at all.",
        security: [],
        answers: ["text/plain"],
      }),
    })
    .get(
      "/readyz",
      ({ status }) => {
        const why = ctx.draining ? "The server is stopping." : whyNotServing(ctx);
        return why === undefined ? status(200, { message: "Ready." }) : status(503, { message: why });
      },
      {
        response: { 200: Generic, 503: Generic },
        detail: {
          tags,
          operationId: "checkReadiness",
          summary: "Ready",
          description: "503 while the server starts or stops, and while a node of a cluster may not serve.",
          security: [],
        },
      },
    );

/** What keeps a node of a cluster from its work; undefined for a server without a cluster. */
const whyNotServing = ({ cluster }: ApiContext): string | undefined => {
  if (!cluster) return undefined;
  if (isStandbyMissing(cluster.view)) return "No synchronous standby of the database is connected: writes wait.";
  return cluster.serves_ms > 0 ? undefined : "The database does not confirm that this node is the active one.";
};
