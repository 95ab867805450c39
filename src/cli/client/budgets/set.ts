// `slipway budgets set SCOPE [NAME] --amount N|--remove [--unit UNIT] [--per PERIOD]`: creates a budget, replaces its amount, or removes it.
import { isUuid } from "#base/ids.ts";
import { usageError } from "#base/usage-error.ts";
import { BUDGET_SCOPES, BUDGET_UNITS, type BudgetScope, type BudgetUnit } from "#schema/ai/budget.ts";
import { formatAmount, formatBudgetTitle } from "#schema/ai/budget-words.ts";
import { USAGE_PERIODS } from "#schema/chats/usage-limit.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { RunVerb } from "../../verb.ts";
import { getGroup } from "../groups/find.ts";
import { withServer } from "../remote.ts";
import { getUser } from "../users/find.ts";

const MICROS = 1_000_000;

const parseChoice = <const V extends readonly string[]>(option: string, values: V, given: string): V[number] => {
  const found = values.find((one) => one === given);
  if (found === undefined) throw usageError(option, `expected one of ${values.join(", ")}`);
  return found;
};

/** Returns the ID of the limited resource. Throws VerbFailure if the name is unknown. */
const getScopeId = async (
  client: Client,
  scope: BudgetScope,
  name: string,
  organization: string | undefined,
): Promise<string> => {
  if (isUuid(name)) return name;
  if (scope === "user") return (await getUser(client, name)).id;
  if (scope === "group") return (await getGroup(client, organization, name)).id;
  if (scope === "chat") throw usageError("NAME", "expected the id of a chat");
  const all = await client.get(scope === "template" ? "/api/v2/templates" : "/api/v2/organizations");
  const found = all.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!found) throw await toUnknownNameError(scope, name, () => all.map((one) => one.name), `slipway ${scope}s list`);
  return found.id;
};

const parseAmount = (unit: BudgetUnit, given: string | undefined): number => {
  const amount = Number(given ?? Number.NaN) * (unit === "usd" ? MICROS : 1);
  if (given === undefined || !Number.isFinite(amount) || amount < 0) {
    throw usageError("--amount", unit === "usd" ? "expected US dollars, such as 25" : "expected a number of tokens");
  }
  return Math.round(amount);
};

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, {
    values: ["amount", "unit", "per", "organization"],
    switches: ["remove"],
  });
  const [word = "", name, ...more] = words;
  const scope = parseChoice("SCOPE", BUDGET_SCOPES, word);
  const unit = parseChoice("--unit", BUDGET_UNITS, value.unit ?? "usd");
  const period = parseChoice("--per", USAGE_PERIODS, value.per ?? "month");
  if (more.length > 0 || (scope === "everyone") !== (name === undefined)) {
    throw usageError("budgets set", scope === "everyone" ? "expected no name after everyone" : `expected the ${scope}`);
  }
  const amount = has.remove ? 0 : parseAmount(unit, value.amount);
  return withServer("budgets set", input, value, async ({ client }) => {
    const scopeFields =
      name === undefined ? {} : { scope_id: await getScopeId(client, scope, name, value.organization) };
    if (!has.remove) {
      const budget = await client.put("/api/v2/ai/budgets", { scope, ...scopeFields, period, unit, amount });
      const summary = `${formatBudgetTitle(budget)} is ${formatAmount(unit, budget.amount)}.`;
      input.print(has.json ? JSON.stringify(budget) : summary);
      return;
    }
    const found = (await client.get("/api/v2/ai/budgets")).find(
      (one) =>
        one.scope === scope &&
        one.scope_id === (scopeFields.scope_id ?? "") &&
        one.period === period &&
        one.unit === unit,
    );
    if (!found) throw new VerbFailure("This budget doesn't exist. `slipway budgets list` lists budgets.");
    await client.delete(`/api/v2/ai/budgets/${found.id}`);
    input.print(has.json ? JSON.stringify(found) : `Removed ${formatBudgetTitle(found).replace(/^The/, "the")}.`);
  });
};
