// Why an upgrade failed, in a sentence for the operator.

export class UpgradeError extends Error {
  override readonly name = "UpgradeError";
}
