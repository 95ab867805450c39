// Administration of the server itself, for site owners: backups, log, support bundle and linked external accounts.
import { checkServerAdmin } from "#domain/access.ts";
import { listExternalAccounts } from "#domain/administration/external-accounts.ts";
import { ExternalAccounts } from "#schema/administration/external-accounts.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { backups } from "./backups.ts";
import { serverLog } from "./logs.ts";
import { supportBundles } from "./support-bundle.ts";

const tags = ["Administration"];

export const administration = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/deployment/external-auth",
      ({ caller }) => {
        checkServerAdmin(caller);
        return listExternalAccounts(ctx);
      },
      {
        user: true,
        response: { 200: ExternalAccounts, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "listLinkedAccounts",
          summary: "List users with linked external accounts",
          description: "Returns the users and their accounts. Tokens are never returned.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .use(backups(ctx))
    .use(serverLog(ctx))
    .use(supportBundles(ctx));
