// `slipway port-forward WORKSPACE 8080:80 --udp 53`: forwards local ports to a workspace. If the workspace stops, the next connection
// starts it (rules CN-6, WO-8).
import { pause } from "#base/retry.ts";
import { usageError } from "#base/usage-error.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { isTemporary, type Remote, readMessages, withServer } from "../remote.ts";
import { WorkspaceStoppedError } from "../workspaces/agent.ts";
import { listOwnWorkspaces } from "../workspaces/find.ts";
import { HeldConnections } from "./held-connections.ts";
import { parsePortPairs } from "./port-pairs.ts";
import { type ConnectedAgent, withAgent } from "./target.ts";
import { TcpForward } from "./tcp-forward.ts";
import { UdpForward } from "./udp-forward.ts";

const POLL_INTERVAL_MS = 1_000;
const START_POLL_INTERVAL_MS = 5_000;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, {
    lists: ["tcp", "udp"],
    switches: ["disable-autostart"],
  });
  const [first, ...ports] = words;
  const word = takeOneWord(input, first === undefined ? [] : [first], "the workspace");
  const tcp = parsePortPairs("--tcp", [...ports, ...list.tcp]);
  const udp = parsePortPairs("--udp", list.udp);
  if (tcp.length + udp.length === 0) throw usageError("argument", "expected at least one port, such as 8080:80");
  return withServer("port-forward", input, value, async (remote) => {
    const name = await promptIfMissing(input, word, "Workspace", () => listOwnWorkspaces(remote.client));
    const datagrams = new UdpForward();
    const held = new HeldConnections(input.clock);
    await using stack = new AsyncDisposableStack();
    stack.defer(() => datagrams.close());
    const lines: string[] = [];
    let workspace_id = "";
    const addLine = (kind: string, { bind, local, remote }: { bind: string; local: number; remote: number }): void =>
      void lines.push(`${kind} ${bind}:${local} forwards to port ${remote} of ${name}\n`);
    for (const pair of tcp) {
      const forward = stack.use(await TcpForward.open(pair, () => held.dial(pair.remote)));
      addLine("tcp", { ...pair, local: forward.port });
    }
    for (const pair of udp) addLine("udp", { ...pair, local: await datagrams.open(pair) });
    const forwardPorts = async ({ workspace, joined, agent_id }: ConnectedAgent): Promise<number> => {
      for (const line of lines.splice(0)) input.printError(line);
      workspace_id = workspace.id;
      // The status before connecting. If the workspace had to be started, its programs may still be starting.
      const isFresh = workspace.latest_build.status !== "running";
      held.open((port) => joined.peer.dial(agent_id, port), isFresh);
      if (udp.length > 0) datagrams.setRemote(await joined.peer.find(agent_id), joined.peer.getAddressPair(agent_id));
      await waitForStop(input, remote, workspace);
      return 0;
    };
    const options = { datagram: datagrams.deliver.bind(datagrams), mayStart: !has["disable-autostart"] };
    // Until Ctrl-C, or until access is revoked.
    for (;;) {
      try {
        await withAgent(input, remote, name, forwardPorts, options);
        input.printError(`${name} has stopped. A new connection to one of these ports starts it.\n`);
      } catch (error) {
        // The reason may be temporary, so the ports stay open.
        if (workspace_id === "" || !(error instanceof WorkspaceStoppedError)) throw error;
        input.printError(`slipway port-forward: ${error.message}\n`);
      }
      held.close();
      const end = new AbortController();
      await Promise.race([held.waitForStartRequest(), waitForStart(input, remote, workspace_id, end.signal)]);
      end.abort();
    }
  });
};

/** Resolves when the current build stops running. Throws VerbFailure when the workspace is deleted, or access is revoked. */
const waitForStop = async (input: VerbInput, { client }: Remote, { id, name }: Workspace): Promise<void> => {
  let build_id: string | undefined;
  for (;;) {
    try {
      const path = `/api/v2/workspaces/${id}/watch-ws`;
      for await (const { type, data } of readMessages<{ type: string; data: Workspace }>(client, path)) {
        if (type !== "data") continue;
        build_id ??= data.latest_build.id;
        if (data.latest_build.transition === "delete") throw new VerbFailure(`${name} was deleted`);
        if (data.latest_build.id !== build_id) return;
      }
    } catch (error) {
      // The server may be restarting.
      if (!isTemporary(error)) throw error;
    }
    await pause(input.clock, POLL_INTERVAL_MS);
  }
};

/** Resolves when someone else has started the workspace. */
const waitForStart = async (input: VerbInput, { client }: Remote, id: string, end: AbortSignal): Promise<void> => {
  while (!end.aborted) {
    await pause(input.clock, START_POLL_INTERVAL_MS);
    const workspace = await client.get<Workspace>(`/api/v2/workspaces/${id}`).catch(() => undefined);
    if (workspace?.latest_build.transition === "start") return;
  }
};
