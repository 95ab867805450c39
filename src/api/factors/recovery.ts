// Replaces the recovery codes with new ones (rule FA-5).
import { loadOwnAccount } from "#domain/factors/proof.ts";
import { renewRecoveryCodes } from "#domain/factors/recovery.ts";
import { userPath } from "#domain/users/find.ts";
import { RecoveryCodes } from "#schema/users/second-factor.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const recoveryCodes = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:user/factors/recovery-codes",
      async ({ caller, params, status }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        return status(201, { recovery_codes: await renewRecoveryCodes(ctx, user, caller) });
      },
      {
        user: true,
        params: userPath,
        response: { 201: RecoveryCodes, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags: ["Second factors"],
          operationId: "createRecoveryCodes",
          summary: "Regenerate recovery codes",
          description:
            "Invalidates earlier codes. Returns 403 with the field `confirmation` if you must confirm your identity first.",
          access: "owner_only",
          scope: "all",
        }),
      },
    );
