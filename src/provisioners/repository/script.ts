// Builds the start scripts of a workspace with a repository. The first script clones the repository once, and runs the lifecycle commands
// up to the step that the start waits for. The second script runs the later commands. Pure.

import { sha256 } from "#base/ids.ts";
import { quoteForShell } from "#base/text/shell-quote.ts";
import type { ManifestScript } from "#schema/templates/manifest.ts";
import {
  LIFECYCLE_STEPS,
  type Lifecycle,
  type LifecycleCommand,
  type LifecycleStep,
  type RepositoryPlan,
} from "#schema/templates/repository.ts";
import { FOLDER_VARIABLE } from "./configuration.ts";

export type ScriptFolders = {
  /** The clone's folder in shell syntax: quoted, or with variables. */
  readonly root: string;
  /** The folder to open, in the same syntax. */
  readonly folder: string;
  /** The folder that records which commands have run, in the same syntax. It must persist as long as the files that the commands change. */
  readonly state: string;
};

const COMMAND_NAMES: Readonly<Record<LifecycleStep, string>> = {
  on_create: "onCreateCommand",
  update_content: "updateContentCommand",
  post_create: "postCreateCommand",
  post_start: "postStartCommand",
};

export const toRepositoryScripts = (plan: RepositoryPlan, folders: ScriptFolders): ManifestScript[] => {
  const blockingSteps = LIFECYCLE_STEPS.slice(0, LIFECYCLE_STEPS.indexOf(plan.wait_for) + 1);
  const laterSteps = LIFECYCLE_STEPS.filter((step) => !blockingSteps.includes(step) && plan.lifecycle[step].length > 0);
  const firstLines = [
    ...listPrelude(plan, folders),
    ...REPORT_OUTCOME,
    ...listCloneCommands(plan),
    ...listStepCommands(plan, blockingSteps),
    "finish ready",
  ];
  const secondLines = [...listPrelude(plan, folders), ...WAIT_FOR_FIRST, ...listStepCommands(plan, laterSteps)];
  const joinScript = (display_name: string, lines: readonly string[], start_blocks_login: boolean): ManifestScript => ({
    display_name,
    script: `${lines.join("\n")}\n`,
    run_on_start: true,
    start_blocks_login,
  });
  return [
    joinScript("Repository", firstLines, true),
    ...(laterSteps.length > 0 ? [joinScript("Repository commands", secondLines, false)] : []),
  ];
};

/** Quotes a word, except `${NAME}`, which the shell expands. */
const quoteExceptVariables = (word: string): string =>
  word
    .split(/(\$\{[A-Za-z_]\w*\})/)
    .filter((part) => part !== "")
    .map((part) => (/^\$\{[A-Za-z_]\w*\}$/.test(part) ? `"${part}"` : quoteForShell(part)))
    .join("") || "''";

const listPrelude = (plan: RepositoryPlan, { root, folder, state }: ScriptFolders): string[] => [
  `url=${quoteForShell(plan.ssh_url ?? plan.url)}`,
  `host=${quoteForShell(new URL(plan.ssh_url ?? plan.url).host)}`,
  `dir=${root}`,
  `folder=${folder}`,
  `state=${state}`,
  `${FOLDER_VARIABLE}=$dir`,
  `export ${FOLDER_VARIABLE}`,
  'mkdir -p "$state" || exit 1',
  // Each start has a new agent ID, so the mark of an earlier start is never read.
  'mark="$state/start-$SLIPWAY_WORKSPACE_AGENT_ID"',
];

/** Reports the outcome of the first script to the second script, even if a signal ends the first script. */
const REPORT_OUTCOME = [
  'rm -f "$state"/start-*',
  'finish() { trap - EXIT; echo "$1" >"$mark"; }',
  "trap 'finish failed' EXIT",
  "trap 'exit 1' HUP INT TERM",
];

const WAIT_FOR_FIRST = [
  'until [ -s "$mark" ]; do sleep 1; done',
  'if [ "$(cat "$mark")" != ready ]; then',
  '  echo "These commands were skipped because the Repository script failed." >&2',
  "  exit 1",
  "fi",
];

const INSTALL_GIT = `if ! command -v git >/dev/null 2>&1; then
  echo "This image has no git. Trying to install it."
  as_root=
  if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
  if command -v apt-get >/dev/null 2>&1; then
    $as_root apt-get update -qq && $as_root apt-get install -y -qq git ca-certificates
  elif command -v apk >/dev/null 2>&1; then $as_root apk add --no-cache git
  elif command -v dnf >/dev/null 2>&1; then $as_root dnf install -y -q git
  fi
  if ! command -v git >/dev/null 2>&1; then
    echo "The repository cannot be cloned: git is not installed here. Use an image with git." >&2
    exit 1
  fi
fi`;

const ACCESS_ADVICE = {
  account:
    "If it is private, link your account at $host on the page Account > Git and linked accounts, then restart the workspace.",
  key: "Check that your deploy key is listed in the repository's settings at $host and on the page Account > Git and linked accounts, then restart the workspace.",
};

const toRefusedFunction = ({ ssh_url }: RepositoryPlan): string => `refused() {
  echo "The repository $url could not be cloned from $host; the message from Git is above." >&2
  echo "${ssh_url === undefined ? ACCESS_ADVICE.account : ACCESS_ADVICE.key}" >&2
  exit 1
}`;

const listCloneCommands = (plan: RepositoryPlan): string[] => [
  toRefusedFunction(plan),
  // Removes an interrupted clone and starts again. No other files are ever removed.
  'if [ -e "$dir/.git/slipway-cloning" ]; then',
  '  echo "The last clone was interrupted. Starting again."',
  '  find "$dir" -mindepth 1 -maxdepth 1 -exec rm -rf {} +',
  "fi",
  'if [ -e "$dir/.git" ]; then',
  '  echo "The repository is already in $dir. Leaving it unchanged."',
  'elif [ -n "$(find "$dir" ! -type d 2>/dev/null | head -n 1)" ]; then',
  '  echo "$dir contains other files. Skipping the clone."',
  "else",
  INSTALL_GIT,
  '  echo "Cloning $url into $dir."',
  '  mkdir -p "$dir" && git init -q "$dir" && : >"$dir/.git/slipway-cloning" && cd "$dir" || exit 1',
  '  git remote add origin "$url" || exit 1',
  // If git-lfs is enabled for all repositories, one missing large file would fail the checkout.
  "  export GIT_LFS_SKIP_SMUDGE=1",
  ...listCheckoutCommands(plan),
  "  unset GIT_LFS_SKIP_SMUDGE",
  "  if [ -f .gitmodules ]; then",
  `    git submodule update --init --recursive${plan.full_history ? "" : " --depth 1"} || echo "Some submodules could not be fetched; the message from Git is above." >&2`,
  "  fi",
  "  if git grep -q filter=lfs -- .gitattributes '*/.gitattributes' 2>/dev/null; then",
  "    if git lfs version >/dev/null 2>&1; then",
  '      git lfs install --local >/dev/null && git lfs pull || echo "Large files could not be fetched from $host; the message from Git is above." >&2',
  "    else",
  '      echo "Large files of this repository are placeholders: git-lfs is not installed here." >&2',
  "    fi",
  "  fi",
  '  rm -f "$dir/.git/slipway-cloning"',
  ...(plan.full_history
    ? ['  echo "Cloned."']
    : ['  echo "Cloned the latest commit only. To fetch the full history, run: git fetch --unshallow"']),
  "fi",
  'mkdir -p "$folder"',
];

/**
 * Returns the commands that fetch and check out the plan's ref. A branch is checked out as a local branch, so that the user can push to it.
 * Tags and commits are checked out detached.
 */
const listCheckoutCommands = ({ ref, ref_kind, full_history }: RepositoryPlan): string[] => {
  const depth = full_history ? "" : " --depth 1";
  const fetch = (refspec: string): string => `  git fetch -q${depth} origin ${refspec} || refused`;
  const fetchTags = full_history ? ["  git fetch -q --tags origin || refused"] : [];
  switch (ref_kind) {
    case "default":
      return [
        "  remote=$(git ls-remote --symref origin HEAD) || refused",
        "  branch=$(printf '%s\\n' \"$remote\" | sed -n 's#^ref: refs/heads/\\([^[:space:]]*\\).*#\\1#p' | head -n 1)",
        ...fetchTags,
        '  if [ -n "$branch" ]; then',
        `  ${fetch('"+refs/heads/$branch:refs/remotes/origin/$branch"')}`,
        '    git checkout -q -b "$branch" --track "origin/$branch" || exit 1',
        "  else",
        `  ${fetch("HEAD")}`,
        "    git checkout -q --detach FETCH_HEAD || exit 1",
        "  fi",
      ];
    case "branch": {
      const branch = ref.replace(/^refs\/heads\//, "");
      return [
        ...fetchTags,
        fetch(quoteForShell(`+refs/heads/${branch}:refs/remotes/origin/${branch}`)),
        `  git checkout -q -b ${quoteForShell(branch)} --track ${quoteForShell(`origin/${branch}`)} || exit 1`,
      ];
    }
    case "tag":
      return [
        ...fetchTags,
        fetch(quoteForShell(`+${ref}:${ref}`)),
        `  git checkout -q --detach ${quoteForShell(ref)} || exit 1`,
      ];
    case "commit":
      return [...fetchTags, fetch(quoteForShell(ref)), "  git checkout -q --detach FETCH_HEAD || exit 1"];
    case "pull_request": {
      const number = /\d+/.exec(ref)?.[0] ?? "0";
      const localRef = `refs/remotes/origin/pull/${number}`;
      return [
        ...fetchTags,
        fetch(quoteForShell(`+${ref}:${localRef}`)),
        `  git checkout -q --no-track -b pull-${number} ${quoteForShell(localRef)} || exit 1`,
      ];
    }
  }
};

/**
 * Returns the commands of these steps, in order. The commands of post_start run at every start; all others run once, and again when they
 * change.
 */
const listStepCommands = ({ lifecycle }: RepositoryPlan, steps: readonly LifecycleStep[]): string[] =>
  steps.flatMap((step) => {
    const groups = lifecycle[step];
    if (groups.length === 0) return [];
    if (step === "post_start") return ['cd "$folder" || exit 1', ...listGroupCommands(step, groups)];
    const doneFile = `"$state/${step}-${sha256(JSON.stringify(groups)).slice(0, 16)}"`;
    return [
      `if [ ! -e ${doneFile} ]; then`,
      'cd "$folder" || exit 1',
      ...listGroupCommands(step, groups),
      `: >${doneFile}`,
      "fi",
    ];
  });

const listGroupCommands = (step: LifecycleStep, groups: Lifecycle): string[] =>
  groups.flatMap((group) => {
    const [onlyCommand] = group;
    const failCommand = `{ echo "${COMMAND_NAMES[step]} has failed." >&2; exit 1; }`;
    if (group.length === 1 && onlyCommand)
      return [toAnnouncement(step, onlyCommand), `${toCommandLine(onlyCommand)} || ${failCommand}`];
    // Starts the commands in parallel and waits for each of them.
    return [
      "pids=",
      ...group.flatMap((one) => [toAnnouncement(step, one), `${toCommandLine(one)} & pids="$pids $!"`]),
      "worst=0",
      'for pid in $pids; do wait "$pid" || worst=1; done',
      `[ "$worst" = 0 ] || ${failCommand}`,
    ];
  });

const toAnnouncement = (step: LifecycleStep, { name }: LifecycleCommand): string =>
  `printf '%s\\n' ${quoteForShell(`Running ${COMMAND_NAMES[step]}${name === undefined ? "" : ` (${name})`}.`)}`;

const toCommandLine = ({ run }: LifecycleCommand): string =>
  typeof run === "string" ? `sh -c ${quoteForShell(run)}` : run.map(quoteExceptVariables).join(" ");
