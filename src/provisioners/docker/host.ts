// Where a Docker Engine answers, from the text of the setting `docker_host`. Refuses what cannot be spoken to from here.
import { ProvisionError } from "../provisioner.ts";

const DEFAULT_DOCKER_HOST = "unix:///var/run/docker.sock";

/** What `fetch` needs: the beginning of each URL, and the socket where there is one. */
export type DockerHost = { readonly shown: string; readonly base: string; readonly socket?: string };

/** Throws ProvisionError for a scheme that is not unix, tcp, http or https. */
export const dockerHost = (text: string = DEFAULT_DOCKER_HOST): DockerHost => {
  const [, scheme = "", rest = ""] = /^([a-z]+):\/\/(.+)$/.exec(text) ?? [];
  if (scheme === "unix") return { shown: text, base: "http://docker", socket: rest };
  const web = scheme === "tcp" ? `http://${rest}` : text;
  if (["tcp", "http", "https"].includes(scheme) && URL.canParse(web)) {
    // Shown to anyone who reads a build's log: without the user and password that the address may hold.
    return { shown: text.replace(/\/\/[^/]*@/, "//"), base: web.replace(/\/+$/, "") };
  }
  throw new ProvisionError(
    `The setting docker_host cannot be used: ${text} is not a unix, tcp, http or https address.`,
  );
};
