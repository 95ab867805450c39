// The words of `slipway connections`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

export const CONNECTIONS = group({
  area: "people",
  name: "connections",
  help: "See who was connected to which workspace, and say how long that is kept.",
  details: CONNECTION,
  words: [
    {
      name: "list",
      usage: "[WORDS] [--limit N]",
      help: "The newest 50, or N; words search, such as username:me, type:ssh or status:ongoing.",
      load: () => import("../client/connections/list.ts"),
    },
    {
      name: "retention",
      usage: "[DAYS]",
      help: "For how many days entries are kept, or shall be from now on; 0 is for ever.",
      load: () => import("../client/connections/retention.ts"),
    },
  ],
});
