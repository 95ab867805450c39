// Logos that templates and apps name as `/icon/NAME.svg`, in the ecosystem's own words. The build puts their shapes, which simple-icons has, into
// one file that the page fetches with the first of them.

/** By name of the ecosystem: the name in simple-icons. */
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
