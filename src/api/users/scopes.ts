// Lists the scopes of tokens, for pages and programs that let people choose.
import { t } from "elysia";
import { SCOPES } from "#schema/users/scopes.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const authScopes = () =>
  routes({ prefix: "/auth" })
    .use(callers)
    .get("/scopes", () => ({ external: [...SCOPES] }), {
      user: true,
      response: {
        200: t.Object({
          external: t.Array(t.String(), { description: "Names that can be sent as `scopes` of a new token." }),
        }),
        ...fails(401, 403),
      },
      detail: operation({
        tags: ["API keys"],
        operationId: "listTokenScopes",
        summary: "List token scopes",
        access: "users",
        scope: "any",
      }),
    });
