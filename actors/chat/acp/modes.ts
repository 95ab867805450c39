// Which of its modes a coding agent is to work in. Pure.

/** The modes of a session, and the one that it is in. */
export type SessionModes = { readonly available: readonly string[]; readonly current: string };

const PLAN = "plan";

/**
 * Returns the mode for a turn, or undefined where the agent has none to choose from. A chat that plans takes the agent's `plan`. Any other takes
 * `preferred`, else the agent's default; a session that was left in `plan` leaves it.
 */
export const modeFor = (
  { available, current }: SessionModes,
  { isPlanning, preferred }: { readonly isPlanning: boolean; readonly preferred: string },
): string | undefined => {
  if (isPlanning && available.includes(PLAN)) return PLAN;
  if (available.includes(preferred)) return preferred;
  if (current !== PLAN) return current === "" ? undefined : current;
  return available.includes("default") ? "default" : available.find((mode) => mode !== PLAN);
};
