// A pull request as a git host shows it, and what can be asked of a host.

export type Pull = {
  readonly pr_number: number;
  readonly pr_state: "open" | "closed" | "merged";
  readonly pr_draft: boolean;
  readonly pr_title: string;
  readonly url: string;
  readonly author_login: string;
  readonly author_avatar_url: string;
  readonly base_branch: string;
  readonly head_branch: string;
  readonly additions: number;
  readonly deletions: number;
  readonly changed_files: number;
  readonly commits: number;
  readonly reviewer_count: number;
  readonly approved: boolean;
  readonly changes_requested: boolean;
};

/** One project at a host. Everything throws PullError. */
export interface Pulls {
  /** The newest pull request from this branch; undefined when none exists. */
  find(branch: string): Promise<number | undefined>;
  read(number: number): Promise<Pull>;
  /** The unified diff of a pull request. */
  diff(number: number): Promise<string>;
  /** The unified diff of a branch against the project's own. */
  branchDiff(branch: string): Promise<string>;
}
