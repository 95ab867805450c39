// Requests that a cluster node answers from the database while another node is active. Code that only the active node can run calls
// `passToActiveNode`: the request is marked, and its response is discarded whatever the handler does with the error.
import { AsyncLocalStorage } from "node:async_hooks";

/** Internal status for a request this node cannot answer; not used for anything else. */
export const MISDIRECTED = 421;

type LocalRead = { isPassedOn: boolean };

const reading = new AsyncLocalStorage<LocalRead>();

/** Thrown when a handler cannot continue here; the active node is asked instead. */
export class PassedOn extends Error {
  override readonly name = "PassedOn";

  constructor() {
    super("only the active node of the cluster can do this");
  }
}

/** Marks the current request and throws. */
export const passToActiveNode = (): never => {
  const now = reading.getStore();
  if (now) now.isPassedOn = true;
  throw new PassedOn();
};

/** Returns whether the current request is answered from the database alone. */
export const isLocalRead = (): boolean => reading.getStore() !== undefined;

/**
 * Leaves the context for work that continues after the request, such as a WebSocket: at that point, no other node could be asked instead.
 */
export const leaveLocalRead = <T>(work: () => T): T => reading.exit(work);

/** For process-local data such as the log: the active node is asked for its own. */
export const requireActiveNode = (): void => {
  if (isLocalRead()) passToActiveNode();
};

/** Returns the result of `answer`; undefined when only the active node can provide it. */
export const readLocally = async <T>(answer: () => Promise<T>): Promise<T | undefined> => {
  const now: LocalRead = { isPassedOn: false };
  const answered = await reading.run(now, answer);
  return now.isPassedOn ? undefined : answered;
};
