// Requests that a node of a cluster answers from the database though another node is the active one. Whatever only the active node has or
// may do says so by `passOn`: then the request is marked, and its answer is not used, whatever its handler makes of the error.
import { AsyncLocalStorage } from "node:async_hooks";

/** What a node says to itself that it cannot answer; nothing else of the server uses this status. */
export const MISDIRECTED = 421;

type Reading = { isPassedOn: boolean };

const reading = new AsyncLocalStorage<Reading>();

/** Why a handler cannot go on here; the active node is asked in its place. */
export class PassedOn extends Error {
  override readonly name = "PassedOn";

  constructor() {
    super("only the active node of the cluster can do this");
  }
}

/** Marks the request that is being answered and throws. */
export const passOn = (): never => {
  const now = reading.getStore();
  if (now) now.isPassedOn = true;
  throw new PassedOn();
};

/** True inside of a request that is answered from the database alone. */
export const isReadHere = (): boolean => reading.getStore() !== undefined;

/** What continues after the request, such as a WebSocket, is not read in it: no other node could be asked instead any more. */
export const afterReading = <T>(work: () => T): T => reading.exit(work);

/** For what a process knows of itself, such as its log: the active node is asked for its own. */
export const onActiveNode = (): void => {
  if (isReadHere()) passOn();
};

/** What `answer` comes to; undefined when only the active node can say it. */
export const readHere = async <T>(answer: () => Promise<T>): Promise<T | undefined> => {
  const now: Reading = { isPassedOn: false };
  const answered = await reading.run(now, answer);
  return now.isPassedOn ? undefined : answered;
};
