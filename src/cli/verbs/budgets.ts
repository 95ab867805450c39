// The subcommands of `slipway budgets`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

export const BUDGETS = group({
  area: "people",
  name: "budgets",
  help: "List and set budgets of model calls.",
  details: () =>
    [
      "SCOPE is everyone, user, group, organization, template or chat; all except everyone need a NAME or an ID.",
      "--amount  US dollars or tokens",
      "--unit    usd (default) or tokens",
      "--per     day, week or month (default)",
      "--remove  remove the budget instead",
      CONNECTION(),
    ].join("\n"),
  subcommands: [
    {
      name: "list",
      usage: "",
      help: "Lists budgets that you manage or that limit you, with current usage.",
      load: () => import("../client/budgets/list.ts"),
    },
    {
      name: "set",
      usage: "SCOPE [NAME] --amount N|--remove [--unit UNIT] [--per PERIOD] [--organization NAME]",
      help: "Creates a budget or replaces its amount.",
      load: () => import("../client/budgets/set.ts"),
    },
  ],
});
