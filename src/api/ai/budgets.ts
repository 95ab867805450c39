// Routes of budgets, which limit the cost or usage of model calls.
import { t } from "elysia";
import { putBudget, raiseBudget, readBudgets, removeBudget } from "#domain/budgets/budgets.ts";
import { Budget, PutBudget, RaiseBudget } from "#schema/ai/budget.ts";
import { budget, newBudget, raisedBudget } from "../audit/setting-targets.ts";
import { writes } from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const user = true;
const tags = ["AI gateway"];
const path = t.Object({ budget: t.String({ description: "The ID of the budget." }) });

export const aiBudgets = (ctx: ApiContext) =>
  routes({ prefix: "/budgets" })
    .use(callers)
    .get("", ({ caller }) => readBudgets(ctx, caller), {
      user,
      response: { 200: t.Array(Budget), ...fails(401) },
      detail: operation({
        tags,
        operationId: "listBudgets",
        summary: "List budgets",
        description:
          "Returns the budgets that you manage or that limit you, with their usage. Spend limits of users are listed by `usage-limits`.",
        access: "users",
        scope: "chat:read",
      }),
    })
    .put("", ({ caller, body }) => putBudget(ctx, caller, body), {
      user,
      body: PutBudget,
      response: { 200: Budget, ...fails(400, 401, 403, 413) },
      detail: operation({
        tags,
        operationId: "setBudget",
        summary: "Create or update a budget",
        description:
          "Creates the budget for a scope, period and unit, or replaces its amount. A call must fit into every budget that it counts toward.",
        example: { scope: "everyone", period: "month", unit: "usd", amount: 500_000_000 },
        audit: writes(newBudget),
        access: "admins",
        outlivesGrant: true,
        scope: "chat:update",
      }),
    })
    .delete(
      "/:budget",
      async ({ caller, params, status }) => {
        await removeBudget(ctx, caller, params.budget);
        return status(204, undefined);
      },
      {
        user,
        params: path,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteBudget",
          summary: "Delete a budget",
          description: "Deletes a budget. Chats that wait for it continue.",
          audit: writes(budget),
          access: "users",
          outlivesGrant: true,
          scope: "chat:update",
        }),
      },
    )
    .post(
      "/:budget/raise",
      async ({ caller, params, body, status }) => {
        await raiseBudget(ctx, caller, params.budget, body.amount);
        return status(204, undefined);
      },
      {
        user,
        params: t.Object({
          budget: t.String({
            description: "The ID of the budget, or `person:` and a user's ID for that user's spend limit.",
          }),
        }),
        body: RaiseBudget,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 413) },
        detail: operation({
          tags,
          operationId: "raiseBudget",
          summary: "Raise a budget for the current period",
          description:
            "Adds an amount for the current period. Chats that wait for the budget continue with the same turn. The budget itself is unchanged.",
          example: { amount: 5_000_000 },
          audit: writes(raisedBudget),
          access: "users",
          outlivesGrant: true,
          scope: "chat:update",
        }),
      },
    );
