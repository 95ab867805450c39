// The subcommands of `slipway repositories`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const load = () => import("../client/repositories/prebuilds.ts");

export const REPOSITORIES = group({
  area: "templates",
  name: "repositories",
  help: "Build repository images in advance, so that workspaces start in seconds.",
  details: () => `REPOSITORY is a link, the last segment of one, or an ID.\n${CONNECTION()}`,
  subcommands: [
    {
      name: "list",
      usage: "",
      help: "Lists the repositories whose images are built in advance.",
      load: async () => ({ run: (await load()).list }),
    },
    {
      name: "add",
      usage: "LINK [--every HOURS] [--keep N]",
      help: "Builds the image of the default branch now, after each push, and every HOURS hours. Prints the webhook's URL and secret.",
      load: async () => ({ run: (await load()).add }),
    },
    {
      name: "build",
      usage: "REPOSITORY",
      help: "Checks for new commits now and builds the image of the newest one.",
      load: async () => ({ run: (await load()).build }),
    },
    {
      name: "remove",
      usage: "REPOSITORY",
      help: "Stops building images of the repository in advance.",
      load: async () => ({ run: (await load()).remove }),
    },
  ],
});
