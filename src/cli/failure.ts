// An error of a command, as a sentence for the user; the program exits with code 1.

export class VerbFailure extends Error {
  override readonly name = "VerbFailure";
}
