// `slipway ssh WORKSPACE[.AGENT] [-- COMMAND…]`: a shell, or a command whose exit code is passed on, over the private network; with `--stdio`
// the connection itself, for OpenSSH (rules CN-2, CN-3).
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { oneWord, orAsked } from "../../asked.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { ownWorkspaces } from "../workspaces/find.ts";
import { workspaceOfHost } from "./host-names.ts";
import { sshLibrary, sshSession } from "./ssh-session.ts";
import { passStdio } from "./ssh-stdio.ts";
import { withAgent } from "./target.ts";

const SHAPE = {
  values: ["host-prefix", "container", "container-user"],
  lists: ["env"],
  switches: ["stdio", "forward-agent"],
} as const;

export const run: RunVerb = async (input) => {
  const { words, value, has, list, behind } = readArguments(input.argv, SHAPE);
  const word = oneWord(input, words, "the workspace");
  return withServer("ssh", input, value, async (remote) => {
    const asked = await orAsked(input, word, "Workspace", () => ownWorkspaces(remote.client));
    const name = value["host-prefix"] === undefined ? asked : workspaceOfHost(asked, value["host-prefix"]);
    const reaching = withAgent(input, remote, name, ({ joined, agent_id }) =>
      has.stdio
        ? passStdio(input, joined.peer, agent_id)
        : sshSession(input, joined.peer, agent_id, {
            command: behind?.join(" "),
            env: [...list.env, ...containerIn(value)],
            forwardsAgent: has["forward-agent"],
          }),
    );
    // Read while the server is asked.
    if (!has.stdio) void sshLibrary();
    return reaching;
  });
};

/** The variables by which the workspace knows that the session is for a container. Throws UsageError for a user without one. */
const containerIn = ({ container, "container-user": user }: Readonly<Record<string, string | undefined>>): string[] => {
  if (container === undefined && user !== undefined) throw usageError("--container-user", "needs --container");
  return [
    ...(container === undefined ? [] : [`SLIPWAY_CONTAINER=${container}`]),
    ...(user === undefined ? [] : [`SLIPWAY_CONTAINER_USER=${user}`]),
  ];
};
