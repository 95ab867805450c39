import { expect, test } from "bun:test";
import {
  type CandidateRef,
  hasCredentials,
  listCandidateRefs,
  parseRepositoryAddress,
} from "#base/links/repository-address.ts";

const SHA = "0123456789abcdef0123456789abcdef01234567";

/** Pasted links, each with its clone URL and the other information in the link. */
const LINKS: readonly (readonly [string, string, object?])[] = [
  ["https://github.com/acme/app", "https://github.com/acme/app"],
  ["  https://github.com/acme/app.git\n", "https://github.com/acme/app.git"],
  ["https://ann:secret@github.com/acme/app/", "https://github.com/acme/app"],
  ["git@github.com:acme/app.git", "https://github.com/acme/app.git"],
  ["ssh://git@Git%2eExample.com/acme/app.git", "https://git.example.com/acme/app.git"],
  ["ssh://git@git.example.com:2222/acme/app.git", "https://git.example.com/acme/app.git"],
  ["https://github.com/acme/app?tab=readme-ov-file#install", "https://github.com/acme/app"],
  ["https://github.com/acme/app/issues/4", "https://github.com/acme/app"],
  ["https://github.com/acme/app/tree/main", "https://github.com/acme/app", { branch: "main" }],
  [
    "https://github.com/acme/app/tree/fix/login/docs",
    "https://github.com/acme/app",
    { branch_and_path: "fix/login/docs" },
  ],
  [`https://github.com/acme/app/tree/${SHA}/docs/a`, "https://github.com/acme/app", { commit: SHA, path: "docs/a" }],
  ["https://github.com/acme/app/blob/main/README.md", "https://github.com/acme/app", { branch: "main" }],
  [
    "https://github.com/acme/app/blob/main/docs/a%20b/README.md",
    "https://github.com/acme/app",
    { branch_and_path: "main/docs/a b" },
  ],
  [`https://github.com/acme/app/commit/${SHA}`, "https://github.com/acme/app", { commit: SHA }],
  ["https://github.com/acme/app/pull/17", "https://github.com/acme/app", { pull_request: 17 }],
  ["https://github.com/acme/app/pull/17/files", "https://github.com/acme/app", { pull_request: 17 }],
  ["https://gitlab.com/group/sub/app", "https://gitlab.com/group/sub/app"],
  [
    "https://gitlab.com/group/sub/deep/app/-/tree/main/docs?ref_type=heads",
    "https://gitlab.com/group/sub/deep/app",
    { branch_and_path: "main/docs" },
  ],
  [
    "https://gitlab.example.com/group/app/-/merge_requests/5/diffs",
    "https://gitlab.example.com/group/app",
    { pull_request: 5 },
  ],
  [`https://gitlab.com/group/app/-/commit/${SHA}`, "https://gitlab.com/group/app", { commit: SHA }],
  ["https://gitea.com/acme/app/src/branch/main/docs", "https://gitea.com/acme/app", { branch_and_path: "main/docs" }],
  ["https://gitea.com/acme/app/src/tag/v1.0", "https://gitea.com/acme/app", { branch: "v1.0" }],
  [
    `https://codeberg.org/acme/app/src/commit/${SHA}/docs`,
    "https://codeberg.org/acme/app",
    { commit: SHA, path: "docs" },
  ],
  ["https://gitea.com/acme/app/pulls/9", "https://gitea.com/acme/app", { pull_request: 9 }],
  ["https://bitbucket.org/acme/app/src/main/docs/", "https://bitbucket.org/acme/app", { branch_and_path: "main/docs" }],
  [`https://bitbucket.org/acme/app/src/${SHA}/`, "https://bitbucket.org/acme/app", { commit: SHA }],
  ["https://bitbucket.org/acme/app/branch/fix/login", "https://bitbucket.org/acme/app", { branch: "fix/login" }],
  ["https://bitbucket.org/acme/app/pull-requests/3", "https://bitbucket.org/acme/app", { pull_request: 3 }],
  [
    "https://git.example.com/projects/KEY/repos/app/browse/docs?at=refs%2Fheads%2Ffix",
    "https://git.example.com/scm/key/app.git",
    { branch: "fix", path: "docs" },
  ],
  [
    "https://git.example.com/users/ann/repos/app/pull-requests/8/overview",
    "https://git.example.com/scm/~ann/app.git",
    { pull_request: 8 },
  ],
  ["http://127.0.0.1:3000/app.git", "http://127.0.0.1:3000/app.git"],
];

test.each(LINKS as [string, string, object?][])("[RW-1] parses the link %s", (link, url, details = {}) => {
  const name =
    url
      .split("/")
      .at(-1)
      ?.replace(/\.git$/, "") ?? "";
  expect(parseRepositoryAddress(link)).toEqual({ url, name, ...(details as object) });
  expect(new URL(url).href).toBe(url);
});

const INVALID_LINKS = [
  "ssh://-oProxyCommand=x/acme/app",
  // Hosts that are possible in an ssh link, but not in a web URL.
  ...["ssh://a%0ab/x/y", "ssh://a%20b/x/y", "ssh://127.0.0.1%3a22/x/y", "ssh://256.0.0.1/x/y", "git@1.2.3.999:x/y"],
  "git@-o.example.com:acme/app",
  "",
  "app",
  "acme/app",
  "/etc/passwd",
  "file:///etc/passwd",
  "ext::sh -c id",
  "--upload-pack=id",
  "https://github.com",
  "https://github.com/",
  "https://github.com/acme/..%2f..",
  "https://github.com/acme/%00",
  "https://github.com/acme/-app",
  "javascript:alert(1)",
  "https://github.com/acme/app and more",
  `https://github.com/acme/${"a".repeat(2_100)}`,
];

test("[DK-5] distinguishes a link with a password or token from one with a username", () => {
  const withCredentials = [
    "https://ann:pw@h.example/a/b",
    "ssh://git:pw@h.example/a/b",
    `https://ghp_${"a".repeat(36)}@github.com/a/b`,
    `https://${SHA}@git.example.com/a/b`,
    "https://glpat-x@gitlab.com/a/b.git",
    "https://h.example/a/b?private_token=x",
    "https://h.example/a/b?a=1&access_token=x#readme",
  ];
  const withoutCredentials = [
    "https://ann@bitbucket.org/a/b",
    "git@h.example:a/b",
    "ssh://git@h/a",
    "https://h/a/b?tab=tokens&token=",
  ];
  expect([withCredentials.filter((link) => !hasCredentials(link)), withoutCredentials.filter(hasCredentials)]).toEqual([
    [],
    [],
  ]);
});

test.each(INVALID_LINKS)("[RW-1] rejects %j", (link) => {
  expect(parseRepositoryAddress(link)).toBeUndefined();
});

test("[RW-1] tries the shortest branch name first if a link does not separate branch and folder", () => {
  const branches = listCandidateRefs({ branch_and_path: "fix/login/docs" }).filter(({ kind }) => kind === "branch");
  expect(branches).toEqual([
    { ref: "refs/heads/fix", kind: "branch", path: "login/docs" },
    { ref: "refs/heads/fix/login", kind: "branch", path: "docs" },
    { ref: "refs/heads/fix/login/docs", kind: "branch" },
  ] satisfies CandidateRef[]);
});
