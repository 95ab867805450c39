// Takes secrets out of texts before anybody sees them. Every line of a text is a secret of its own, because logs come in lines.

/** Shorter ones would hide ordinary words. */
const SHORTEST = 6;
const SHOWN = "(hidden)";

export class Mask {
  /** The longest first, so that no part of one stays behind. */
  #secrets: string[] = [];

  add(...secrets: readonly (string | undefined)[]): void {
    const lines = secrets.flatMap((secret) => (secret ?? "").split(/\r?\n/)).map((line) => line.trim());
    const known = new Set([...this.#secrets, ...lines.filter((line) => line.length >= SHORTEST)]);
    // In JSON and quoted texts of HCL a secret is written otherwise.
    for (const one of [...known]) known.add(JSON.stringify(one).slice(1, -1));
    this.#secrets = [...known].sort((a, b) => b.length - a.length);
  }

  hide(text: string): string {
    let shown = text;
    for (const secret of this.#secrets) if (shown.includes(secret)) shown = shown.replaceAll(secret, SHOWN);
    return shown;
  }
}

const SECRETS = new Set(["token", "session_token", "ssh_private_key", "oidc_access_token", "access_token"]);

/** The secrets in a state file that the provider `coder` has put there; none when it is no state. */
export const secretsInState = (state: string): string[] => {
  try {
    const { resources = [] } = JSON.parse(state) as {
      resources?: { type: string; instances?: { attributes?: Record<string, unknown> }[] }[];
    };
    return resources
      .filter(({ type }) => type.startsWith("coder_"))
      .flatMap(({ instances = [] }) => instances)
      .flatMap(({ attributes = {} }) => Object.entries(attributes))
      .flatMap(([name, value]) => (SECRETS.has(name) && typeof value === "string" ? [value] : []));
  } catch {
    return [];
  }
};
