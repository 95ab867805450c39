// Downloads devcontainer features from registries (OCI distribution specification): a tag's manifest and its only layer, with an anonymous
// token if the registry requires one. Signs in to registries for engines that pull images. Every request goes through `outbound`,
// because users provide the URLs.

import { isIP } from "node:net";
import { JsonProblem, readBytes, readJson } from "#base/json/read.ts";
import { UnknownEncoding } from "#base/network/plain-fetch.ts";
import { type Outbound, OutboundError } from "#base/outbound.ts";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const MAX_MANIFEST_BYTES = 256 * 1024;
/** Maximum size of an image's manifest: registries may reject larger ones. */
const MAX_PULL_MANIFEST_BYTES = 4 * 1024 * 1024;
/** Maximum size of a feature. */
export const MAX_FEATURE_BYTES = 32 * 1024 * 1024;
const MAX_REDIRECTS = 3;

/** Registries that name only their own addresses for sign-in. An engine may reach them through a mirror when the server cannot. */
const KNOWN_REGISTRIES = new Set([
  "docker.io",
  "index.docker.io",
  "registry-1.docker.io",
  "ghcr.io",
  "mcr.microsoft.com",
  "quay.io",
  "gcr.io",
  "public.ecr.aws",
  "registry.gitlab.com",
  "registry.k8s.io",
  "lscr.io",
]);
/** The token for registries that require none. */
const NO_TOKEN = "none";

type RegistryRequest = {
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  readonly tls?: { readonly rejectUnauthorized: boolean };
};

export class FeatureRegistry {
  readonly #outbound: Outbound;

  /** `outbound` must allow responses of MAX_FEATURE_BYTES. */
  constructor(outbound: Outbound) {
    this.#outbound = outbound;
  }

  /** Returns the tar of a feature such as `ghcr.io/devcontainers/features/node:1`. Rejects with an Error that has a message for users. */
  async fetch(id: string, signal: AbortSignal): Promise<Uint8Array> {
    const { base, path, version } = parseReference(id);
    try {
      const url = new URL(`${base}/v2/${path}/manifests/${version}`);
      const firstAnswer = await this.#get(url, { token: undefined, signal });
      const token = firstAnswer.status === 401 ? await this.#fetchToken(firstAnswer, { signal }) : undefined;
      const answer = token === undefined ? firstAnswer : await this.#get(url, { token, signal });
      if (!answer.ok) throw new Error(`${url.host} answered with status ${answer.status}`);
      const digest = findDigest(await readJson(answer, { maxBytes: MAX_MANIFEST_BYTES }));
      const blob = await this.#get(new URL(`${base}/v2/${path}/blobs/${digest}`), { token, signal });
      if (!blob.ok) throw new Error(`${url.host} answered with status ${blob.status}`);
      const bytes = await readBytes(blob, MAX_FEATURE_BYTES);
      const actualDigest = `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
      if (actualDigest !== digest) throw new Error(`${url.host} sent content that doesn't match its digest`);
      return bytes;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const reason = (error as Error).message.replace(/\.$/, "");
      throw new Error(`The feature ${id} cannot be fetched: ${reason}.`, { cause: error });
    }
  }

  /**
   * Returns the token with which an engine pulls an image. An engine with a token does not call the sign-in address that a registry names,
   * which could be on the engine's machine. Undefined for well-known registries. Rejects with an Error that has a message for users if the
   * registry is at an address that is not allowed, names such an address, or sends a manifest that is too large.
   */
  async fetchPullToken(image: string, signal: AbortSignal): Promise<string | undefined> {
    const { host, path, version } = parseImage(image);
    if (KNOWN_REGISTRIES.has(host)) return undefined;
    const urls = ["https", "http"].map((scheme) => `${scheme}://${host}/v2/${path}/manifests/${version}`);
    // An engine could connect to a name that cannot be parsed here.
    if (path === "" || !urls.every((url) => URL.canParse(url)))
      throw new Error(`The image ${image} is not a reference to a registry.`);
    // Certificates are checked only by the engine, which may trust authorities that the server does not know. Nothing secret is sent here,
    // and the engine sends the token only to this registry.
    const request = { signal, tls: { rejectUnauthorized: false } };
    for (const text of urls) {
      try {
        const url = new URL(text);
        const firstAnswer = await this.#get(url, { ...request, token: undefined });
        if (firstAnswer.status !== 401) {
          await checkManifestSize(firstAnswer, url);
          return NO_TOKEN;
        }
        const token = await this.#fetchToken(firstAnswer, request);
        await checkManifestSize(await this.#get(url, { ...request, token }), url);
        return token;
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        // An engine can reach registries that the server cannot.
        if (isUnreachable(error)) continue;
        const reason = (error as Error).message.replace(/\.$/, "");
        throw new Error(`The image ${image} cannot be fetched: ${reason}.`, { cause: error });
      }
    }
    return NO_TOKEN;
  }

  /** Follows redirects, and sends a token only to the registry. */
  async #get(url: URL, { token, ...request }: RegistryRequest): Promise<Response> {
    let target = url;
    for (let redirects = 0; ; redirects++) {
      const isRegistry = target.host === url.host;
      const headers = {
        accept: `${MANIFEST}, */*`,
        ...(token !== undefined && isRegistry ? { authorization: `Bearer ${token}` } : {}),
      };
      const answer = await this.#outbound.open(target, { ...request, headers });
      const location = answer.headers.get("location");
      if (answer.status < 301 || answer.status > 308 || location === null) return answer;
      void answer.body?.cancel().catch(() => {});
      if (redirects === MAX_REDIRECTS || !URL.canParse(location, target.href))
        throw new Error(`${url.host} redirects too many times`);
      target = new URL(location, target.href);
    }
  }

  async #fetchToken(challenge: Response, request: Omit<RegistryRequest, "token">): Promise<string> {
    void challenge.body?.cancel().catch(() => {});
    const header = challenge.headers.get("www-authenticate") ?? "";
    const parts = Object.fromEntries(
      [...header.matchAll(/(?<!\w)(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    );
    const { realm, service, scope } = parts;
    if (!/^bearer /i.test(header) || realm === undefined || !URL.canParse(realm))
      throw new Error("the registry requires sign-in");
    const url = new URL(realm);
    if (service) url.searchParams.set("service", service);
    if (scope) url.searchParams.set("scope", scope);
    const answer = await this.#outbound.open(url, request);
    if (!answer.ok) throw new Error(`${url.host} gives no anonymous token (status ${answer.status})`);
    const json = await readJson(answer, { maxBytes: MAX_MANIFEST_BYTES }).catch((cause) => {
      throw new Error(`${url.host} gives no anonymous token`, { cause });
    });
    const { token, access_token } = (json ?? {}) as Record<string, unknown>;
    const anonymousToken = token ?? access_token;
    if (typeof anonymousToken !== "string") throw new Error(`${url.host} gives no anonymous token`);
    return anonymousToken;
  }
}

/** Parses `host/path:tag` or `host/path@digest`. Registries on localhost are called without TLS, as container engines do. */
const parseReference = (id: string): { base: string; path: string; version: string } => {
  const [, host = "", path = "", tag, digest] =
    /^([\w.-]+(?::\d+)?)\/([\w./-]+?)(?::([\w][\w.-]{0,127})|@(sha256:[a-f0-9]{64}))?$/.exec(id) ?? [];
  if (host === "" || path.split("/").some((part) => part === "" || part === "." || part === "..")) {
    throw new Error(`The feature ${id} is not a reference to a registry.`);
  }
  const name = host.replace(/:\d+$/, "");
  const isLocal = name === "localhost" || (isIP(name) === 4 && name.startsWith("127."));
  return { base: `${isLocal ? "http" : "https"}://${host}`, path, version: digest ?? tag ?? "latest" };
};

/** Parses an image as engines do. Without a host, it is on Docker Hub. */
const parseImage = (image: string): { host: string; path: string; version: string } => {
  const [, first = "", rest = ""] = /^([^/]+)\/(.+)$/.exec(image) ?? [];
  const hasHost = /[.:A-Z]/.test(first) || first === "localhost";
  const [, path = "", tag, digest] = /^([^:@]+)(?::([^@]+))?(?:@(.+))?$/.exec(hasHost ? rest : image) ?? [];
  return { host: hasHost ? first : "docker.io", path, version: digest ?? tag ?? "latest" };
};

/** Returns whether there was no answer. */
const isUnreachable = (error: unknown): boolean =>
  error instanceof OutboundError && error.reason === "failed" && !(error.cause instanceof UnknownEncoding);

/** Rejects if the manifest is too large for engines, which keep a manifest, packed and unpacked, in memory. */
const checkManifestSize = async (answer: Response, { host }: URL): Promise<void> => {
  try {
    await readBytes(answer, MAX_PULL_MANIFEST_BYTES);
  } catch (cause) {
    const problem = cause instanceof JsonProblem ? cause.message : "cannot be read to its end.";
    throw new Error(`the manifest from ${host} ${problem}`, { cause });
  }
};

const findDigest = (manifest: unknown): string => {
  const { layers } = (manifest ?? {}) as { layers?: { digest?: unknown }[] };
  const digest = Array.isArray(layers) ? layers[0]?.digest : undefined;
  if (typeof digest !== "string" || !/^sha256:[a-f0-9]{64}$/.test(digest)) throw new Error("the manifest has no layer");
  return digest;
};
