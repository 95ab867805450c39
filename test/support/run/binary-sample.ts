// The API tests that `npm test` repeats against the compiled binary. Compiling changes how the program finds embedded files and how it
// starts itself; all other behavior was already tested in the server's process. This sample covers each of these changes, and `npm test --
// --all-binary`, which runs before a release, covers the other files. Files belong here only if `startTestServer` starts their server
// without a clock or a model: the others would run exactly as in the step `unit`, whose separate processes are compiled, too.

/** Files by the change that they cover. Paths are relative to test/api; a folder stands for its files. */
export const BINARY_SAMPLE: Readonly<Record<string, readonly string[]>> = {
  "pages, documents and pictures inside the program": [
    "pages.test.ts",
    "appearance.test.ts",
    "deployment-facts.test.ts",
  ],
  "templates, examples and texts inside": ["templates/story.test.ts", "templates/ready-docker.test.ts"],
  "workers: readers of the database, password strength": ["users/password-rules.test.ts"],
  "the program starts itself: daemons, workers of builds, other nodes": [
    ...["workspaces/local.test.ts", "workspaces/local-user.test.ts", "workspaces/local-supervisor.test.ts"],
    ...["workspaces/restart.test.ts", "agents/programs.test.ts"],
    ...["template-versions/dry-run-workers.test.ts", "provisioner-daemons/serve.test.ts"],
  ],
  "packages that are loaded when they are needed": [
    "notifications/mail.test.ts",
    "administration/outgoing-requests.test.ts",
  ],
  "settings, the log and reports about the program": [
    "administration/server.test.ts",
    "health-report.test.ts",
    "deployment.test.ts",
  ],
  "the HTTP server as it is bundled: routes, bodies, answers, sockets": [
    ...["edge/body.test.ts", "edge/encoding.test.ts", "edge/headers.test.ts", "edge/requests.test.ts"],
    ...["users/session.test.ts", "access.test.ts"],
    ...["workspaces/watch-all.test.ts", "audit/trail.test.ts"],
  ],
};

/** Files of test/binary that need the binary, or give the same result from source: they run only against the binary. */
export const BINARY_ONLY: readonly string[] = [
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
/** Files of test/binary that do not use the binary, or would test the same with it: they run only from source. */
const SOURCE_ONLY: readonly string[] = ["bootstrap.test.ts", "readme.test.ts", "readme-verbs.test.ts"];

/** Returns the files of test/binary (names without the folder) to run with the binary. */
export const listBinaryFiles = (names: readonly string[]): string[] =>
  names.filter((name) => name.endsWith(".test.ts") && !SOURCE_ONLY.includes(name)).map((name) => `test/binary/${name}`);

const containsFile = (path: string, file: string): boolean =>
  file === `test/api/${path}` || file.startsWith(`test/api/${path}/`);

/** Returns the files of the sample among `files` (paths from the root). */
export const selectSample = (files: readonly string[], sample = BINARY_SAMPLE): string[] =>
  files.filter((file) => Object.values(sample).some((paths) => paths.some((path) => containsFile(path, file))));

/** Returns sample paths that match none of `files`: they were moved and would no longer run. */
export const findMissingPaths = (files: readonly string[], sample = BINARY_SAMPLE): string[] =>
  Object.values(sample)
    .flat()
    .filter((path) => !files.some((file) => containsFile(path, file)));
