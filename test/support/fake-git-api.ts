// A fake API of a git host: a real HTTP server that answers like GitHub or GitLab, with ETags. It records requests and can reject them.
import { createHash } from "node:crypto";

type Answer = { readonly json?: unknown; readonly text?: string; readonly headers?: Record<string, string> };

export class FakeGitApi implements Disposable {
  /** Responses by path and query. A key with the request's `Accept` header, a space and the path takes precedence. */
  readonly answers = new Map<string, Answer>();
  /** `200 /path` of every request. */
  readonly requests: string[] = [];
  readonly tokens = new Set<string>();
  /** If set, answers all requests. */
  refuse: (() => Response) | undefined;
  readonly #server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.#answer(request) });

  /** Without a trailing slash. */
  get url(): string {
    return this.#server.url.origin;
  }

  json(path: string, json: unknown, headers: Record<string, string> = {}): void {
    this.answers.set(path, { json, headers });
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }

  #answer(request: Request): Response {
    const { pathname, search } = new URL(request.url);
    this.tokens.add(request.headers.get("authorization") ?? "");
    const path = pathname + search;
    const response = this.refuse?.() ?? this.#answerFor(request, path);
    this.requests.push(`${response.status} ${path}`);
    return response;
  }

  #answerFor(request: Request, path: string): Response {
    const accept = request.headers.get("accept") ?? "";
    const found = this.answers.get(`${accept} ${path}`) ?? this.answers.get(path);
    if (!found) return Response.json({ message: "Not Found" }, { status: 404 });
    const body = found.text ?? JSON.stringify(found.json);
    const etag = `"${createHash("sha256").update(body).digest("hex").slice(0, 16)}"`;
    const headers = { etag, ...found.headers };
    if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers });
    return new Response(body, { headers });
  }
}

/** Returns a pull request in GitHub's format. */
export const createGithubPull = (host: string, fields: Record<string, unknown> = {}) => ({
  number: 7,
  state: "open",
  draft: false,
  merged: false,
  title: "Fix the Frobnicator",
  html_url: `${host}/team/repo/pull/7`,
  user: { login: "ann", avatar_url: `${host}/ann.png` },
  base: { ref: "main" },
  head: { ref: "fix" },
  additions: 3,
  deletions: 1,
  changed_files: 2,
  commits: 1,
  requested_reviewers: [{ login: "cleo" }],
  ...fields,
});
