// Selects the agent of a terminal or file page, if the workspace has several. The choice is in the address, so that a link leads to the
// same agent.
import { useLocation } from "preact-iso/router";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { Button } from "../../parts/button.tsx";

type AgentChoiceProps = { readonly agents: readonly WorkspaceAgent[]; readonly agent: WorkspaceAgent | undefined };

export const AgentChoice = ({ agents, agent }: AgentChoiceProps) => {
  const { path, route } = useLocation();
  if (agents.length < 2) return null;
  return (
    <div class="group of-agents" role="group" aria-label="Agent">
      {agents.map((one) => (
        <Button
          key={one.id}
          small
          pressed={one === agent}
          onPress={() => route(`${path}?${new URLSearchParams({ agent: one.name })}`)}
        >
          {one.name}
        </Button>
      ))}
    </div>
  );
};
