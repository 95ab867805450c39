// For machines that watch this server: alive, and ready for work.
import { Elysia, t } from "elysia";
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
        summary: "Alive",
        description: "200 as long as the process answers at all.",
        security: [],
        answers: ["text/plain"],
      }),
    })
    .get(
      "/readyz",
      ({ status }) =>
        ctx.draining ? status(503, { message: "The server is stopping." }) : status(200, { message: "Ready." }),
      {
        response: { 200: Generic, 503: Generic },
        detail: { tags, summary: "Ready", description: "503 while the server starts or stops.", security: [] },
      },
    );
