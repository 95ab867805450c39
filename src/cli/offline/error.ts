/** An error that the user can fix; the command prints this message and exits with code 1. */
export class MachineError extends Error {
  override readonly name = "MachineError";
}
