// Parses the address of a Docker Engine from the setting `docker_host`. Rejects unsupported addresses.
import { ProvisionError } from "../provisioner.ts";

const DEFAULT_DOCKER_HOST = "unix:///var/run/docker.sock";

/** What `fetch` needs: the base of each URL, and the socket if there is one. */
export type DockerHost = { readonly shown: string; readonly base: string; readonly socket?: string };

/** Throws ProvisionError for a scheme other than unix, tcp, http or https. */
export const dockerHost = (text: string = DEFAULT_DOCKER_HOST): DockerHost => {
  const [, scheme = "", rest = ""] = /^([a-z]+):\/\/(.+)$/.exec(text) ?? [];
  if (scheme === "unix") return { shown: text, base: "http://docker", socket: rest };
  const web = scheme === "tcp" ? `http://${rest}` : text;
  if (["tcp", "http", "https"].includes(scheme) && URL.canParse(web)) {
    // Shown in build logs, so the user and password in the address are removed.
    return { shown: text.replace(/\/\/[^/]*@/, "//"), base: web.replace(/\/+$/, "") };
  }
  throw new ProvisionError(
    `The setting docker_host cannot be used: ${text} is not a unix, tcp, http or https address.`,
  );
};
