// Bounds the memory of bodies and messages that are on their way. When a sender stops before the last byte, or a receiver doesn't read, the
// bytes stay in memory until the connection ends, so that a few hundred of them would fill the machine (rules HT-49, AX-27, AX-29, PT-8).
// The AI gateway counts its own until their calls end.
import { AppError } from "#base/errors.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import { toNetwork } from "#domain/users/throttle.ts";

export class ByteBudget {
  readonly #refusal: string;
  readonly #total: number;
  readonly #each: number;
  readonly #held = new Map<string, number>();
  #sum = 0;

  /** `total`: bytes of all senders; `each`: of one sender; `refusal`: the message of the error beyond them. */
  constructor(total: number, each: number, refusal: string) {
    this.#refusal = refusal;
    this.#total = total;
    this.#each = each;
  }

  /** Returns a reservation of a sender, of nothing yet. */
  open(sender: string): Reservation {
    let reserved = 0;
    const tryAdd = (bytes: number): string | undefined => {
      const held = this.#held.get(sender) ?? 0;
      if (held + bytes > this.#each || this.#sum + bytes > this.#total) return this.#refusal;
      reserved += bytes;
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
        const taken = Math.min(bytes, reserved);
        reserved -= taken;
        if (taken > 0) this.#change(sender, -taken);
      },
      release: () => {
        if (reserved > 0) this.#change(sender, -reserved);
        reserved = 0;
      },
    };
  }

  /** Whether half of the bytes of all senders, or of this one, are taken. */
  isHalfTaken(sender: string): boolean {
    return this.#sum >= this.#total / 2 || (this.#held.get(sender) ?? 0) >= this.#each / 2;
  }

  #change(sender: string, bytes: number): void {
    const held = (this.#held.get(sender) ?? 0) + bytes;
    if (held === 0) this.#held.delete(sender);
    else this.#held.set(sender, held);
    this.#sum += bytes;
  }
}

/** The error for bodies beyond a budget. */
export const TOO_MANY_BODIES = "Too many large request bodies are being received. Please retry.";

/**
 * What a body that is not read occupies at most: the piece that waits for the workspace or the disk, and what the runtime reads ahead, which
 * cannot be changed (1 MiB and the last packet).
 */
const WAITING_BODY_BYTES = 4 * 1024 * 1024;
/** A smaller body is not counted, so that slow senders of large ones don't hold up everyone's small requests. */
const MIN_COUNTED_BYTES = 64 * 1024;
const MAX_BODIES_BYTES = Math.min(shareOfMemory(1 / 8), 1024 * 1024 * 1024);
/** Each share has room for one body, also on a small machine. */
const makeBudget = (total: number, each: number): ByteBudget => {
  const [all, one] = [total, each].map((share) => Math.max(MAX_BODIES_BYTES * share, WAITING_BODY_BYTES));
  return new ByteBudget(all as number, one as number, TOO_MANY_BODIES);
};
/** Bodies that are streamed to workspaces, by workspace, and to the server's disk, together. */
const streamedBodies = makeBudget(1, 1 / 2);
/** Those of people, by person. */
const bodiesOfPeople = makeBudget(1, 1 / 4);
/** Those of senders without an account, by workspace, because these can have many addresses, and by address. */
const anonymousBodies = makeBudget(1 / 2, 1 / 4);
const bodiesOfAddresses = makeBudget(1 / 2, 1 / 8);

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
  /** Whether half of what bodies to the receiver, or of senders like this one, may take is taken. False for a body that does not count. */
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
  const ofSender = isAnonymous
    ? [anonymousBodies.open(receiver), bodiesOfAddresses.open(toNetwork(address))]
    : [bodiesOfPeople.open(user_id)];
  const reserved = [streamedBodies.open(receiver), ...ofSender];
  const release = (): void => {
    for (const one of reserved) one.release();
  };
  try {
    for (const one of reserved) one.add(bytes);
  } catch (error) {
    release();
    throw error;
  }
  const isShort = (): boolean =>
    streamedBodies.isHalfTaken(receiver) || (isAnonymous && anonymousBodies.isHalfTaken(receiver));
  return { release, isShort };
};

/** The error for a body that was ended because it hardly arrived while others waited for its memory. */
export const slowBodyError = (): AppError =>
  new AppError("timeout", "The request body arrives too slowly while many others are being received. Please retry.");

export interface Reservation {
  /** Reserves more bytes. Throws 503 beyond the budget. */
  add(bytes: number): void;
  /** Reserves more bytes. Returns why not beyond the budget. */
  tryAdd(bytes: number): string | undefined;
  /** Releases that many of them. */
  reduce(bytes: number): void;
  /** Releases all of them. */
  release(): void;
}
