// `slipway budgets list`: budgets with their current usage.
import { budgetTitle, formatAmount } from "#schema/ai/budget-words.ts";
import { noWords, readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  noWords(words);
  return withServer("budgets list", input, value, async ({ client }) => {
    const budgets = await client.get("/api/v2/ai/budgets");
    const rows = budgets.map((one) => [
      plain(budgetTitle(one)),
      formatAmount(one.unit, one.spent),
      formatAmount(one.unit, one.amount + one.extra),
      one.resets_at.slice(0, 10),
    ]);
    input.print(has.json ? JSON.stringify(budgets) : asTable(["BUDGET", "USED", "AMOUNT", "RESETS"], rows));
    return EXIT.ok;
  });
};
