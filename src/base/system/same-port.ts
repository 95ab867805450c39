// Two listeners of one port, of which one is to be closed. The system gives new connections to either, and cuts off the ones that were given to a
// listener when it is closed. So before that happens all new ones are given to the other, or to neither. On Linux; elsewhere a connection that
// comes in that very moment is cut off.
import { ptr } from "bun:ffi";
import { systemLibrary } from "./library.ts";

const SYMBOLS = { setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" } } as const;

// asm-generic/socket.h
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_DETACH_FILTER = 27;
const SO_ATTACH_REUSEPORT_CBPF = 51;

/** One step of a classic filter of packets (linux/filter.h): what to do, where to go on if so and if not, and its number. */
type Step = readonly [code: number, ifSo: number, ifNot: number, value: number];
const LOAD_BYTE = 0x30;
const HAS_BITS = 0x45;
const ANSWER = 0x06;
const EVERYTHING = 0xffff_ffff;
/** Where a packet of TCP has its flags, and that of a new connection. */
const FLAGS_AT = 13;
const SYN = 2;

let library: ReturnType<typeof systemLibrary<typeof SYMBOLS>> | "unknown" = "unknown";

const attach = (descriptor: number, option: number, steps: readonly Step[]): boolean => {
  if (library === "unknown") library = systemLibrary(SYMBOLS);
  if (!library || descriptor < 0) return false;
  const program = new DataView(new ArrayBuffer(8 * steps.length));
  for (const [i, [code, ifSo, ifNot, value]] of steps.entries()) {
    program.setUint16(8 * i, code, true);
    program.setUint8(8 * i + 2, ifSo);
    program.setUint8(8 * i + 3, ifNot);
    program.setUint32(8 * i + 4, value, true);
  }
  const whole = new DataView(new ArrayBuffer(16));
  whole.setUint16(0, steps.length, true);
  whole.setBigUint64(8, BigInt(ptr(new Uint8Array(program.buffer))), true);
  const failed = library.setsockopt(
    descriptor,
    SOL_SOCKET,
    option,
    ptr(new Uint8Array(whole.buffer)),
    whole.byteLength,
  );
  // Named again, so that its memory stays until the system has read it.
  return failed === 0 && program.byteLength > 0;
};

/**
 * Of the two that share their port the one that began to listen second gets all that is new; `descriptor` is of either. Once only one is
 * left, it gets all. False where the system cannot do that.
 */
export const giveToSecond = (descriptor: number): boolean =>
  attach(descriptor, SO_ATTACH_REUSEPORT_CBPF, [[ANSWER, 0, 0, 1]]);

/** Anyone who comes to this listener now is not answered; they try again, and are refused when it is closed. */
export const takeNoMore = (descriptor: number): boolean =>
  attach(descriptor, SO_ATTACH_FILTER, [
    [LOAD_BYTE, 0, 0, FLAGS_AT],
    [HAS_BITS, 0, 1, SYN],
    [ANSWER, 0, 0, 0],
    [ANSWER, 0, 0, EVERYTHING],
  ]);

/** Undoes `takeNoMore`. Anyone who has tried in the meantime comes in with their next try. */
export const takeAgain = (descriptor: number): void => {
  const ignored = new Uint32Array(1);
  if (library !== "unknown") library?.setsockopt(descriptor, SOL_SOCKET, SO_DETACH_FILTER, ptr(ignored), 4);
};
