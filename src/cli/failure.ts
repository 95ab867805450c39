// Why a verb could not do what it was asked, in a sentence for anyone who typed it; ends the program with exit code 1.

export class VerbFailure extends Error {
  override readonly name = "VerbFailure";
}
