// Hands a port from one listener to another. The system distributes new connections to both, and resets the pending connections of a
// listener that is closed. So new connections are first directed to the other listener, or to neither. Linux only; on other systems, a
// connection that arrives at that moment is reset.
import { ptr } from "bun:ffi";
import { loadSystemLibrary } from "./library.ts";

const SYMBOLS = { setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" } } as const;

// asm-generic/socket.h
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_DETACH_FILTER = 27;
const SO_ATTACH_REUSEPORT_CBPF = 51;

/** One instruction of a classic BPF program (linux/filter.h): opcode, jump if true, jump if false, and operand. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];
const LOAD_BYTE = 0x30;
const HAS_BITS = 0x45;
const RETURN = 0x06;
const WHOLE_PACKET = 0xffff_ffff;
/** Offset of the flags in a TCP packet, and the flag of a new connection. */
const FLAGS_OFFSET = 13;
const SYN = 2;

let library: ReturnType<typeof loadSystemLibrary<typeof SYMBOLS>> | "unknown" = "unknown";

const attachFilter = (descriptor: number, option: number, instructions: readonly Instruction[]): boolean => {
  if (library === "unknown") library = loadSystemLibrary(SYMBOLS);
  if (!library || descriptor < 0) return false;
  const program = new DataView(new ArrayBuffer(8 * instructions.length));
  for (const [i, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    program.setUint16(8 * i, code, true);
    program.setUint8(8 * i + 2, ifTrue);
    program.setUint8(8 * i + 3, ifFalse);
    program.setUint32(8 * i + 4, value, true);
  }
  const header = new DataView(new ArrayBuffer(16));
  header.setUint16(0, instructions.length, true);
  header.setBigUint64(8, BigInt(ptr(new Uint8Array(program.buffer))), true);
  const status = library.setsockopt(
    descriptor,
    SOL_SOCKET,
    option,
    ptr(new Uint8Array(header.buffer)),
    header.byteLength,
  );
  // Referenced again to keep the memory alive until the system has read it.
  return status === 0 && program.byteLength > 0;
};

/**
 * Directs all new connections on a shared port to the listener that was opened second; `descriptor` belongs to either. If only one
 * listener is left, it gets all connections. Returns false where the system does not support it.
 */
export const directToSecondListener = (descriptor: number): boolean =>
  attachFilter(descriptor, SO_ATTACH_REUSEPORT_CBPF, [[RETURN, 0, 0, 1]]);

/** Stops answering new connections on this listener; clients retry, and are refused once it is closed. */
export const stopAccepting = (descriptor: number): boolean =>
  attachFilter(descriptor, SO_ATTACH_FILTER, [
    [LOAD_BYTE, 0, 0, FLAGS_OFFSET],
    [HAS_BITS, 0, 1, SYN],
    [RETURN, 0, 0, 0],
    [RETURN, 0, 0, WHOLE_PACKET],
  ]);

/** Undoes `stopAccepting`. Clients that connected in the meantime succeed with their next retry. */
export const resumeAccepting = (descriptor: number): void => {
  const ignored = new Uint32Array(1);
  if (library !== "unknown") library?.setsockopt(descriptor, SOL_SOCKET, SO_DETACH_FILTER, ptr(ignored), 4);
};
