// Descriptions of budgets for notifications, errors, pages and the command line. Pure.
import type { BudgetPause, BudgetPeriod, BudgetUnit } from "./budget.ts";

const MICROS = 1_000_000;
const MONEY = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
/** Fractions of a cent, for prices of single calls. */
const SMALL_MONEY = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumFractionDigits: 6 });
const COUNT = new Intl.NumberFormat("en-US");

/** Formats an amount: `$5.00` or `120,000 tokens`. */
export const formatAmount = (unit: BudgetUnit, amount: number): string => {
  if (unit === "tokens") return amount === 1 ? "1 token" : `${COUNT.format(amount)} tokens`;
  const format = amount % (MICROS / 100) === 0 ? MONEY : SMALL_MONEY;
  return format.format(amount / MICROS);
};

export const PERIOD_ADJECTIVES: Readonly<Record<BudgetPeriod, string>> = {
  day: "daily",
  week: "weekly",
  month: "monthly",
};

/** Returns a budget's name for use inside a sentence: `the monthly budget of "Platform"`. */
export const formatBudgetName = ({ scope, name, period }: Pick<BudgetPause, "scope" | "name" | "period">): string => {
  const adjective = PERIOD_ADJECTIVES[period];
  if (scope === "everyone") return `the ${adjective} budget of everyone`;
  if (scope === "person") return name ? `the ${adjective} spend limit of ${name}` : `a ${adjective} spend limit`;
  return `the ${adjective} budget of ${NOUNS[scope]}${name ? ` "${name}"` : ""}`;
};

const NOUNS = {
  user: "the user",
  group: "the group",
  organization: "the organization",
  template: "the template",
  chat: "the chat",
} as const;

/** Returns a budget's name for the beginning of a sentence. */
export const formatBudgetTitle = (budget: Pick<BudgetPause, "scope" | "name" | "period">): string => {
  const name = formatBudgetName(budget);
  return name.charAt(0).toUpperCase() + name.slice(1);
};
