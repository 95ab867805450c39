// The subcommands of `slipway prebuilds`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const load = () => import("../client/prebuilds/pause.ts");

export const PREBUILDS = group({
  area: "templates",
  name: "prebuilds",
  help: "Pause or resume prebuilt workspaces.",
  details: CONNECTION,
  subcommands: [
    {
      name: "status",
      usage: "",
      help: "Shows whether prebuilt workspaces are paused.",
      load: async () => ({ run: (await load()).status }),
    },
    {
      name: "pause",
      usage: "",
      help: "Pauses prebuilt workspaces. Ready ones can still be claimed.",
      load: async () => ({ run: (await load()).pause }),
    },
    {
      name: "resume",
      usage: "",
      help: "Resumes prebuilt workspaces.",
      load: async () => ({ run: (await load()).resume }),
    },
  ],
});
