// Logos that templates and apps name as `/icon/NAME.svg`. The build collects their shapes from simple-icons in one file, which the page
// fetches when it shows the first logo.

/** Name in the ecosystem → name in simple-icons. */
export const LOGOS = {
  debian: "debian",
  docker: "docker",
  gcp: "googlecloud",
  go: "go",
  hetzner: "hetzner",
  jupyter: "jupyter",
  k8s: "kubernetes",
  kubernetes: "kubernetes",
  node: "nodedotjs",
  nodejs: "nodedotjs",
  python: "python",
  rust: "rust",
  terraform: "terraform",
} as const;
