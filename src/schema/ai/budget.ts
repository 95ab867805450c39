// Wire shapes of budgets: the limit on model calls in a period, the usage, and the pause of a chat whose budget is used up.
import { type Static, Type as t } from "@sinclair/typebox";
import { USAGE_PERIODS } from "../chats/usage-limit.ts";
import { time } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** The callers whose model calls a budget limits. */
export const BUDGET_SCOPES = ["everyone", "user", "group", "organization", "template", "chat"] as const;
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

export const BUDGET_UNITS = ["usd", "tokens"] as const;
export type BudgetUnit = (typeof BUDGET_UNITS)[number];

export type BudgetPeriod = (typeof USAGE_PERIODS)[number];

/** A billion dollars in millionths of a dollar, or 10^15 tokens. */
const MAX_AMOUNT = 1_000_000_000_000_000;

const scope = () =>
  oneOf(
    BUDGET_SCOPES,
    "Whose calls count toward the budget. `chat`: a chat and its sub-chats. `template`: all workspaces of a template.",
  );
const period = () => oneOf(USAGE_PERIODS, "The budget's period, in UTC. Weeks begin on Monday.");
const unit = () =>
  oneOf(BUDGET_UNITS, "The unit of amounts. `usd`: millionths of a US dollar. `tokens`: tokens of all kinds.");
const amount = (minimum: number, description: string) => t.Integer({ minimum, maximum: MAX_AMOUNT, description });

export const PutBudget = named(
  "PutBudget",
  strictObject({
    scope: scope(),
    scope_id: t.Optional(
      t.String({
        format: "uuid",
        description: "The ID of the user, group, organization, template or chat. Absent for `everyone`.",
      }),
    ),
    period: period(),
    unit: unit(),
    amount: amount(0, "The limit for each period. 0 allows no usage."),
  }),
);
export type PutBudget = Static<typeof PutBudget>;

export const RaiseBudget = named(
  "RaiseBudget",
  strictObject({ amount: amount(1, "The amount to add for the current period.") }),
);

export const Budget = namedObject("Budget", {
  id: t.String(),
  scope: scope(),
  scope_id: t.String({
    description: "The ID of the user, group, organization, template or chat; empty for `everyone`.",
  }),
  name: t.String({
    description:
      "The name of the user, group, organization, template or chat; empty for `everyone` and if it was deleted.",
  }),
  period: period(),
  unit: unit(),
  amount: t.Integer({ description: "The limit for each period, without `extra`." }),
  extra: t.Integer({ description: "The amount added for the current period." }),
  spent: t.Integer({ description: "The amount used in the current period." }),
  reserved: t.Integer({ description: "The amount reserved by active calls." }),
  period_start: time("The beginning of the current period."),
  resets_at: time("The end of the current period, when `spent` and `extra` return to 0."),
});
export type Budget = Static<typeof Budget>;

/** A user who can raise a budget. */
const Decider = t.Object({ id: t.String({ format: "uuid" }), name: t.String() });

export const BudgetPause = namedObject("ChatBudgetPause", {
  budget_id: t.String({ description: "Raise this budget to let the turn continue." }),
  scope: oneOf([...BUDGET_SCOPES, "person"], "`person`: the spend limit of the chat's owner."),
  name: t.String({
    description: "The name of the limited user, group, organization, template or chat; empty for `everyone`.",
  }),
  period: period(),
  unit: unit(),
  limit: t.Integer({ description: "The limit for the current period, including amounts added to it." }),
  spent: t.Integer({ description: "The amount used in the current period when the turn paused." }),
  suggested: t.Integer({ description: "A suggested amount to add." }),
  resets_at: time("The latest time at which the turn continues."),
  deciders: t.Array(Decider, { description: "Users who can raise the budget; at most 10." }),
});
export type BudgetPause = Static<typeof BudgetPause>;
