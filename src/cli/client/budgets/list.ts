// `slipway budgets list`: budgets with their current usage.
import { formatAmount, formatBudgetTitle } from "#schema/ai/budget-words.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("budgets list", input, value, async ({ client }) => {
    const budgets = await client.get("/api/v2/ai/budgets");
    const rows = budgets.map((one) => [
      toPlainLine(formatBudgetTitle(one)),
      formatAmount(one.unit, one.spent),
      formatAmount(one.unit, one.amount + one.extra),
      one.resets_at.slice(0, 10),
    ]);
    input.print(has.json ? JSON.stringify(budgets) : formatTable(["BUDGET", "USED", "AMOUNT", "RESETS"], rows));
  });
};
