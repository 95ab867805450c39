// A local registry of features: manifests and blobs as in the OCI distribution specification, with anonymous tokens and redirects of blobs
// to another host.
import { createTarEnd, createTarEntry, joinStreams } from "#base/program-tar.ts";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";

export class FeatureHost implements Disposable {
  /** A description of each request: `manifests NAME`, `blobs NAME`, `stored`, or `a token` if the redirected request has one. */
  readonly requests: string[] = [];
  readonly #manifests = new Map<string, string>();
  readonly #blobs = new Map<string, Uint8Array>();
  readonly #server: Bun.Server<undefined>;

  constructor(tls?: Bun.TLSOptions) {
    const respond = (request: Request): Response => this.#respond(request);
    this.#server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: respond, ...(tls ? { tls } : {}) });
  }

  /** The host and port, with which the IDs of its features begin. */
  get name(): string {
    return this.#server.url.host;
  }

  /** Publishes a feature and returns its ID. */
  async publish(name: string, metadata: object, install: string): Promise<string> {
    const files = { "devcontainer-feature.json": JSON.stringify(metadata), "install.sh": install };
    const entries = Object.entries(files).map(([path, text]) =>
      createTarEntry(`./${path}`, new TextEncoder().encode(text)),
    );
    const blob = new Uint8Array(await new Response(joinStreams([...entries, createTarEnd()])).arrayBuffer());
    const digest = `sha256:${new Bun.CryptoHasher("sha256").update(blob).digest("hex")}`;
    this.#blobs.set(digest, blob);
    const layers = [{ mediaType: "application/vnd.devcontainers.layer.v1+tar", digest, size: blob.length }];
    this.#manifests.set(`${name}/1`, JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, layers }));
    return `${this.name}/${name}:1`;
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }

  #respond(request: Request): Response {
    const { pathname, searchParams, origin } = new URL(request.url);
    const [, name = "", kind = "", reference = ""] = /^\/v2\/(.+)\/(manifests|blobs)\/(.+)$/.exec(pathname) ?? [];
    if (pathname === "/token") return Response.json({ token: `for ${searchParams.get("scope")}` });
    const stored = pathname.startsWith("/stored/") ? this.#blobs.get(pathname.slice("/stored/".length)) : undefined;
    if (stored) {
      const hasToken = request.headers.has("authorization");
      this.requests.push(hasToken ? "a token" : "stored");
      return new Response(new Uint8Array(stored));
    }
    if (request.headers.get("authorization") !== `Bearer for repository:${name}:pull`) {
      const header = `Bearer realm="${origin}/token",service="here",scope="repository:${name}:pull"`;
      return new Response("", { status: 401, headers: { "www-authenticate": header } });
    }
    this.requests.push(`${kind} ${name}`);
    // Redirects to another name of this machine, which counts as another host.
    if (kind === "blobs")
      return Response.redirect(`${origin.replace("127.0.0.1", "localhost")}/stored/${reference}`, 307);
    const manifest = this.#manifests.get(`${name}/${reference}`);
    return manifest
      ? new Response(manifest, { headers: { "content-type": MANIFEST } })
      : new Response("", { status: 404 });
  }
}
