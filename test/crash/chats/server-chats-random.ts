// Ten thousand random chat commands, where each commit is compared with the table, and twenty clients that race for one queue (RELIABILITY
// check 10). Each round is one command.
import { runRandomChats } from "#test/api/chats/random/random-run.ts";
import type { Check } from "../store/store-crash.ts";

export const checks: readonly Check[] = [
  { name: "chats: random commands", run: ({ rounds, seed }) => runRandomChats({ commands: rounds, seed }) },
  {
    name: "chats: race for one queue",
    run: ({ rounds, seed }) => runRandomChats({ commands: rounds, seed, chats: 1, clients: 20, queueOnly: true }),
  },
];
