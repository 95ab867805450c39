// Which of its modes a coding agent is to work in, and with which of its other options. Pure.
import type { AgentOption, ChosenOptions } from "#schema/chats/agent-option.ts";
import { isModeOption } from "#src/acp/options.ts";

/** The modes of a session, and the one that it is in. */
type SessionModes = { readonly available: readonly string[]; readonly current: string };

const PLAN = "plan";

/**
 * Returns the mode for a turn, or undefined where the agent has none to choose from. A chat that plans takes the agent's `plan`. Any other takes
 * `preferred`, else the agent's default; a session that was left in `plan` leaves it.
 */
const modeFor = (
  { available, current }: SessionModes,
  { isPlanning, preferred }: { readonly isPlanning: boolean; readonly preferred: string },
): string | undefined => {
  if (isPlanning && available.includes(PLAN)) return PLAN;
  if (available.includes(preferred)) return preferred;
  if (current !== PLAN) return current === "" ? undefined : current;
  return available.includes("default") ? "default" : available.find((mode) => mode !== PLAN);
};

type Wanted = {
  readonly isPlanning: boolean;
  readonly chosen: ChosenOptions;
  /** The mode that the agent is set up with. */
  readonly preferred: string;
};

/** Returns the choice for a turn; undefined: the agent's own stays. */
export const wantedChoice = (option: AgentOption, { isPlanning, chosen, preferred }: Wanted): string | undefined => {
  const available = option.choices.map(({ id }) => id);
  const asked = chosen[option.id];
  const known = asked !== undefined && available.includes(asked) ? asked : undefined;
  if (!isModeOption(option)) return known;
  return modeFor({ available, current: option.current }, { isPlanning, preferred: known ?? preferred });
};
