/** A database that may not be used, or not in this way; the message says what to change. */
export class UnsafeDatabaseError extends Error {
  override readonly name = "UnsafeDatabaseError";
}
