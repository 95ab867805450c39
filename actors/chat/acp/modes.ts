// Chooses a coding agent's mode and other options for a turn. Pure.
import type { AgentOption, ChosenOptions } from "#schema/chats/agent-option.ts";
import { isModeOption } from "#src/acp/options.ts";

type SessionModes = { readonly available: readonly string[]; readonly current: string };

const PLAN = "plan";

/**
 * Returns the mode for a turn, or undefined when the agent offers none. If the agent has neither `plan` for a planning chat nor the
 * preferred mode, the session keeps its current mode, except that it leaves `plan`.
 */
const chooseMode = (
  { available, current }: SessionModes,
  { isPlanning, preferred }: { readonly isPlanning: boolean; readonly preferred: string },
): string | undefined => {
  if (isPlanning && available.includes(PLAN)) return PLAN;
  if (available.includes(preferred)) return preferred;
  if (current !== PLAN) return current === "" ? undefined : current;
  return available.includes("default") ? "default" : available.find((mode) => mode !== PLAN);
};

type WantedOptions = {
  readonly isPlanning: boolean;
  readonly chosen: ChosenOptions;
  /** The configured mode of the agent. */
  readonly preferred: string;
};

/** Returns the ID of the choice for a turn, or undefined to keep the agent's current one. */
export const chooseOption = (
  option: AgentOption,
  { isPlanning, chosen, preferred }: WantedOptions,
): string | undefined => {
  const available = option.choices.map(({ id }) => id);
  const requested = chosen[option.id];
  const valid = requested !== undefined && available.includes(requested) ? requested : undefined;
  if (!isModeOption(option)) return valid;
  return chooseMode({ available, current: option.current }, { isPlanning, preferred: valid ?? preferred });
};
