// Requests that a cluster node answers from the database while another node is active. Code that only the active node can run calls
// `passToActiveNode`. This marks the request, and its response is discarded even if the handler catches the error.
import { AsyncLocalStorage } from "node:async_hooks";

/** Internal status of a request that this node cannot answer; not used for anything else. */
export const MISDIRECTED = 421;

type LocalRead = { isPassedOn: boolean };

const localReads = new AsyncLocalStorage<LocalRead>();

/** Thrown when a handler cannot continue on this node. The active node then handles the request. */
export class PassedOn extends Error {
  override readonly name = "PassedOn";

  constructor() {
    super("only the active node of the cluster can do this");
  }
}

/** Marks the current request and throws. */
export const passToActiveNode = (): never => {
  const localRead = localReads.getStore();
  if (localRead) localRead.isPassedOn = true;
  throw new PassedOn();
};

/** Returns whether the current request is answered from the database alone. */
export const isLocalRead = (): boolean => localReads.getStore() !== undefined;

/**
 * Leaves the context for work that continues after the request, such as a WebSocket: by then, the request cannot be sent to another node.
 */
export const leaveLocalRead = <T>(work: () => T): T => localReads.exit(work);

/** Passes the request to the active node, for data of one process such as the log. */
export const requireActiveNode = (): void => {
  if (isLocalRead()) passToActiveNode();
};

/** Returns the result of `answer`; undefined when only the active node can provide it. */
export const readLocally = async <T>(answer: () => Promise<T>): Promise<T | undefined> => {
  const localRead: LocalRead = { isPassedOn: false };
  const response = await localReads.run(localRead, answer);
  return localRead.isPassedOn ? undefined : response;
};
