/** Something a person can mend; ends the verb with 1 and these words. */
export class MachineError extends Error {
  override readonly name = "MachineError";
}
