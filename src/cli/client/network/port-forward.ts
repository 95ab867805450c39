// `slipway port-forward WORKSPACE --tcp 8080:80 --udp 53`: ports of this machine that lead to ports of a workspace (rule CN-6).
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { oneWord, orAsked } from "../../asked.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { ownWorkspaces } from "../workspaces/find.ts";
import { portPairs } from "./port-pairs.ts";
import { withAgent } from "./target.ts";
import { TcpForward } from "./tcp-forward.ts";
import { UdpForward } from "./udp-forward.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list } = readArguments(input.argv, { lists: ["tcp", "udp"] });
  const word = oneWord(input, words, "the workspace");
  const tcp = portPairs("--tcp", list.tcp);
  const udp = portPairs("--udp", list.udp);
  if (tcp.length + udp.length === 0) throw usageError("--tcp", "expected at least one port, such as --tcp 8080:80");
  return withServer("port-forward", input, value, async (remote) => {
    const name = await orAsked(input, word, "Workspace", () => ownWorkspaces(remote.client));
    const datagrams = new UdpForward();
    return withAgent(
      input,
      remote,
      name,
      async ({ joined, agent_id }) => {
        await using stack = new AsyncDisposableStack();
        const say = (kind: string, { bind, local, remote }: { bind: string; local: number; remote: number }): void =>
          input.printError(`${kind} ${bind}:${local} leads to port ${remote} of ${name}\n`);
        for (const pair of tcp) {
          const forward = stack.use(await TcpForward.open(pair, () => joined.peer.dial(agent_id, pair.remote)));
          say("tcp", { ...pair, local: forward.port });
        }
        for (const pair of udp) say("udp", { ...pair, local: await datagrams.open(pair) });
        stack.defer(() => datagrams.close());
        if (udp.length > 0) datagrams.leadTo(await joined.peer.find(agent_id), joined.peer.endsTo(agent_id));
        // Until Ctrl-C, or until access ends.
        return await new Promise<number>(() => {});
      },
      { datagram: (one) => datagrams.take(one) },
    );
  });
};
