/** An error that the user can fix; ends the command with exit code 1 and this message. */
export class MachineError extends Error {
  override readonly name = "MachineError";
}
