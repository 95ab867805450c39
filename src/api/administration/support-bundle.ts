// Route that downloads a diagnostic bundle for support, for site owners.
import { t } from "elysia";
import { checkServerAdmin } from "#domain/access.ts";
import { createSupportBundle } from "#domain/administration/support-bundle.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const TAR = "application/x-tar";

export const supportBundles = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/deployment/support-bundle",
      async ({ caller }) => {
        checkServerAdmin(caller);
        const headers = { "content-type": TAR, "content-disposition": 'attachment; filename="slipway-support.tar"' };
        return new Response(await createSupportBundle(ctx), { headers });
      },
      {
        user: true,
        response: { 200: t.Any({ description: "A tar archive with JSON files and the log." }), ...fails(401, 403) },
        detail: operation({
          tags: ["Administration"],
          operationId: "getSupportBundle",
          summary: "Create a support bundle",
          description:
            "Returns a tar archive with the version, machine, settings, health, metrics and the last 2,000 log lines, without secrets. `slipway support-bundle --url` downloads it.",
          answers: [TAR],
          access: "admins",
          scope: "all",
        }),
      },
    );
