// The subcommands of `slipway connections`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

export const CONNECTIONS = group({
  area: "people",
  name: "connections",
  help: "Show the connection log and set its retention.",
  details: CONNECTION,
  subcommands: [
    {
      name: "list",
      usage: "[FILTER] [--limit N]",
      help: "Lists the newest 50 (or N) connections. Filter with terms such as username:me, type:ssh or status:ongoing.",
      load: () => import("../client/connections/list.ts"),
    },
    {
      name: "retention",
      usage: "[DAYS]",
      help: "Shows or sets for how many days entries are kept; 0 keeps them forever.",
      load: () => import("../client/connections/retention.ts"),
    },
  ],
});
