// The words of `slipway repositories`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const load = () => import("../client/repositories/prebuilds.ts");

export const REPOSITORIES = group({
  area: "templates",
  name: "repositories",
  help: "Build images of repositories ahead, so that workspaces start in seconds.",
  details: () => `REPOSITORY is a link, the last part of one, or an ID.\n${CONNECTION()}`,
  words: [
    {
      name: "list",
      usage: "",
      help: "Lists the repositories whose images are built ahead.",
      load: async () => ({ run: (await load()).list }),
    },
    {
      name: "add",
      usage: "LINK [--every HOURS] [--keep N]",
      help: "Builds the image of the default branch's newest commit now, after each push and every so many hours. Prints the webhook's address and secret.",
      load: async () => ({ run: (await load()).add }),
    },
    {
      name: "build",
      usage: "REPOSITORY",
      help: "Looks for a new commit now and builds its image.",
      load: async () => ({ run: (await load()).build }),
    },
    {
      name: "remove",
      usage: "REPOSITORY",
      help: "Builds no more images of the repository ahead.",
      load: async () => ({ run: (await load()).remove }),
    },
  ],
});
