/** A database that must not be used, or not in this way. The message says what to change. */
export class UnsafeDatabaseError extends Error {
  override readonly name = "UnsafeDatabaseError";
}
