// Bounds the memory of bodies and messages that are on their way. When a sender stops before the last byte, or a receiver doesn't read, the
// bytes stay in memory until the connection ends, so that a few hundred of them would fill the machine (rules HT-49, AX-27, AX-29, PT-8).
// The AI gateway counts its own until their calls end.
import { AppError } from "#base/errors.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import { toNetwork } from "#domain/users/throttle.ts";

export class ByteBudget {
  readonly #refusal: string;
  readonly #maxBytes: number;
  readonly #maxBytesPerSender: number;
  readonly #leavesRoom: boolean;
  readonly #bytesBySender = new Map<string, number>();
  #usedBytes = 0;

  /**
   * `maxBytes`: of all senders together; `maxBytesPerSender`: of one; `refusal`: the message of the error above a limit. `leavesRoom`: a
   * sender gets at most as much as is free, so that a few senders cannot take everything.
   */
  constructor(maxBytes: number, maxBytesPerSender: number, refusal: string, leavesRoom = false) {
    this.#leavesRoom = leavesRoom;
    this.#refusal = refusal;
    this.#maxBytes = maxBytes;
    this.#maxBytesPerSender = maxBytesPerSender;
  }

  /** Returns an empty reservation for a sender. */
  open(sender: string): Reservation {
    let reservedBytes = 0;
    const tryAdd = (bytes: number): string | undefined => {
      const senderBytes = this.#bytesBySender.get(sender) ?? 0;
      const freeBytes = this.#maxBytes - this.#usedBytes;
      const maxSenderBytes = this.#leavesRoom ? Math.min(freeBytes, this.#maxBytesPerSender) : this.#maxBytesPerSender;
      if (senderBytes + bytes > maxSenderBytes || bytes > freeBytes) return this.#refusal;
      reservedBytes += bytes;
      this.#change(sender, bytes);
      return undefined;
    };
    return {
      tryAdd,
      add: (bytes) => {
        const refusal = tryAdd(bytes);
        if (refusal !== undefined) throw new AppError("overloaded", refusal);
      },
      reduce: (bytes) => {
        const reducedBytes = Math.min(bytes, reservedBytes);
        reservedBytes -= reducedBytes;
        if (reducedBytes > 0) this.#change(sender, -reducedBytes);
      },
      release: () => {
        if (reservedBytes > 0) this.#change(sender, -reservedBytes);
        reservedBytes = 0;
      },
    };
  }

  /** Returns whether half of the bytes of all senders, or of this one, are reserved. */
  isHalfUsed(sender: string): boolean {
    return (
      this.#usedBytes >= this.#maxBytes / 2 || (this.#bytesBySender.get(sender) ?? 0) >= this.#maxBytesPerSender / 2
    );
  }

  #change(sender: string, bytes: number): void {
    const senderBytes = (this.#bytesBySender.get(sender) ?? 0) + bytes;
    if (senderBytes === 0) this.#bytesBySender.delete(sender);
    else this.#bytesBySender.set(sender, senderBytes);
    this.#usedBytes += bytes;
  }
}

/** The error message for bodies above a budget. */
export const TOO_MANY_BODIES = "Too many large request bodies are being received. Please retry.";

/**
 * Maximum memory of a body that is not read: the piece that waits for the workspace or the disk, and the bytes that the runtime reads ahead,
 * which cannot be changed (1 MiB and the last packet).
 */
const WAITING_BODY_BYTES = 4 * 1024 * 1024;
/** A smaller body is not counted, so that slow senders of large ones don't hold up everyone's small requests. */
const MIN_COUNTED_BYTES = 64 * 1024;
const MAX_BODIES_BYTES = Math.min(shareOfMemory(1 / 8), 1024 * 1024 * 1024);
/** Each share has room for one body, also on a small machine. */
const makeBudget = (totalShare: number, senderShare: number, leavesRoom = false): ByteBudget => {
  const [totalBytes, senderBytes] = [totalShare, senderShare].map((share) =>
    Math.max(MAX_BODIES_BYTES * share, WAITING_BODY_BYTES),
  );
  return new ByteBudget(totalBytes as number, senderBytes as number, TOO_MANY_BODIES, leavesRoom);
};
/** Bodies that are streamed to workspaces, by workspace, and to the server's disk, together. */
const streamedBodies = makeBudget(1, 1 / 2);
/** Bodies from users, by user. */
const userBodies = makeBudget(1, 1 / 4);
/** Bodies that are streamed to the disk, by user. */
const diskBodies = makeBudget(1 / 2, 1 / 4, true);
/** Bodies from senders without an account, by workspace, because one sender can have many addresses, and by address. */
const anonymousBodies = makeBudget(1 / 2, 1 / 4);
const addressBodies = makeBudget(1 / 2, 1 / 8);

/** Input for terminals and desktops that their workspaces have not taken yet, by person. Each has room for a few of the largest messages. */
const MIB = 1024 * 1024;
const MAX_INPUT_BYTES = Math.min(Math.max(shareOfMemory(1 / 8), 64 * MIB), 256 * MIB);
export const waitingInput = new ByteBudget(
  MAX_INPUT_BYTES,
  MAX_INPUT_BYTES / 4,
  "Too much input for workspaces is waiting. Try again later.",
);

/** The receiver of files that are streamed to the server's disk. */
export const DISK = "disk";

export type StreamedBody = {
  /** The ID of a workspace, or `DISK`. */
  readonly receiver: string;
  /** The ID of the sender's account; undefined for one without. */
  readonly user_id: string | undefined;
  readonly address: string;
};

/** The memory of a streamed body. */
export type StreamedReservation = Pick<Reservation, "release"> & {
  /** Returns whether half of the budget of the receiver, or of anonymous senders, is reserved. False for a body that is not counted. */
  readonly isShort: () => boolean;
};

/** Reserves the memory for a body that is streamed to a workspace or to the disk. Throws 503 when too many are on their way. */
export const reserveStreamedBody = (
  { headers }: Request,
  { receiver, user_id, address }: StreamedBody,
): StreamedReservation => {
  const declared = headers.has("transfer-encoding") ? undefined : headers.get("content-length");
  const bytes = Math.min(Number(declared ?? WAITING_BODY_BYTES), WAITING_BODY_BYTES);
  if (bytes <= MIN_COUNTED_BYTES) return { release: () => {}, isShort: () => false };
  const isAnonymous = user_id === undefined;
  const senderReservations = isAnonymous
    ? [anonymousBodies.open(receiver), addressBodies.open(toNetwork(address))]
    : [userBodies.open(user_id), ...(receiver === DISK ? [diskBodies.open(user_id)] : [])];
  const reservations = [streamedBodies.open(receiver), ...senderReservations];
  const release = (): void => {
    for (const one of reservations) one.release();
  };
  try {
    for (const one of reservations) one.add(bytes);
  } catch (error) {
    release();
    throw error;
  }
  const isShort = (): boolean =>
    streamedBodies.isHalfUsed(receiver) || (isAnonymous && anonymousBodies.isHalfUsed(receiver));
  return { release, isShort };
};

/** Returns the error for a body that was ended because it arrived too slowly while others waited for its memory. */
export const makeSlowBodyError = (): AppError =>
  new AppError("timeout", "The request body arrives too slowly while many others are being received. Please retry.");

export interface Reservation {
  /** Reserves more bytes. Throws 503 above the budget. */
  add(bytes: number): void;
  /** Reserves more bytes. Returns the error message above the budget. */
  tryAdd(bytes: number): string | undefined;
  /** Releases that many bytes. */
  reduce(bytes: number): void;
  /** Releases all bytes. */
  release(): void;
}
