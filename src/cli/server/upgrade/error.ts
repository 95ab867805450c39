// Why an upgrade did not happen, in a sentence for whoever is at the machine.

export class UpgradeError extends Error {
  override readonly name = "UpgradeError";
}
