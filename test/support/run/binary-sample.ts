// Which tests of the API `npm test` repeats against the compiled binary. What compiling changes is how the program finds what it carries and
// how it starts itself; every other line of it is the one that the tests alongside the server have run. So of each of these there are some,
// and the rest only by `npm test -- --all-binary`, which a release is run with.

/** By what compiling changes. Paths below test/api; a folder stands for its files. */
export const BINARY_SAMPLE: Readonly<Record<string, readonly string[]>> = {
  "pages, documents and pictures inside the program": [
    "pages.test.ts",
    "appearance.test.ts",
    "deployment-facts.test.ts",
  ],
  "templates, examples and texts inside": ["templates/story.test.ts", "templates/ready-docker.test.ts"],
  "workers: readers of the database, strength of passwords": [
    ...["insights/figures.test.ts", "insights/kept.test.ts", "users/password-rules.test.ts", "users/passwords.test.ts"],
  ],
  "code for the private network in WebAssembly": ["agents/network-dialer.test.ts"],
  "the program starts itself: daemons, workers of builds, other nodes": [
    ...["workspaces/local.test.ts", "workspaces/local-user.test.ts", "workspaces/local-supervisor.test.ts"],
    ...["workspaces/restart.test.ts", "daemon.test.ts", "agents/programs.test.ts"],
    ...["template-versions/dry-run-workers.test.ts", "provisioner-daemons/serve.test.ts"],
  ],
  "packages that are loaded when they are needed": [
    ...["metrics", "notifications/mail.test.ts", "factors/passkeys.test.ts", "factors/totp.test.ts"],
    ...["external-auth/git.test.ts", "administration/outside.test.ts"],
  ],
  "settings, the log and what is reported of the program": [
    "administration/server.test.ts",
    "health-report.test.ts",
    "deployment.test.ts",
  ],
  "the HTTP server as it is bundled: routes, bodies, answers, sockets": [
    ...["edge/body.test.ts", "edge/encoding.test.ts", "edge/headers.test.ts", "edge/requests.test.ts"],
    ...["users/session.test.ts", "access.test.ts"],
    ...["workspaces/watch-all.test.ts", "audit/trail.test.ts", "chats/dropped.test.ts"],
  ],
};

/** Of test/binary: what needs the binary, or says the same from source, is run against it alone. */
export const BINARY_ALONE: readonly string[] = [
  ...[
    "container-agents",
    "devcontainer-agents",
    "docker",
    "docker-hostile",
    "docker-terraform",
    "native-code",
    "operator",
  ],
  ...["repository", "repository-shapes"],
  ...["program", "offline"],
].map((name) => `test/binary/${name}.test.ts`);
/** Of test/binary: what knows nothing of the binary, or would show nothing more alongside it, is run from source alone. */
const SOURCE_ALONE: readonly string[] = ["bootstrap.test.ts", "readme.test.ts", "readme-verbs.test.ts"];

/** The files of test/binary (names without the folder) that the binary is tried with. */
export const binaryFiles = (names: readonly string[]): string[] =>
  names
    .filter((name) => name.endsWith(".test.ts") && !SOURCE_ALONE.includes(name))
    .map((name) => `test/binary/${name}`);

const holds = (path: string, file: string): boolean =>
  file === `test/api/${path}` || file.startsWith(`test/api/${path}/`);

/** Of `files` (paths from the root) those of the sample. */
export const sampleOf = (files: readonly string[], sample = BINARY_SAMPLE): string[] =>
  files.filter((file) => Object.values(sample).some((paths) => paths.some((path) => holds(path, file))));

/** Paths of the sample that fit none of `files`: they have been moved, and would be missed. */
export const missingIn = (files: readonly string[], sample = BINARY_SAMPLE): string[] =>
  Object.values(sample)
    .flat()
    .filter((path) => !files.some((file) => holds(path, file)));
