// Checks whether apps and ports have their own hosts: without them, most apps stay blank, and people should know before they try.
import { accessUrl, type Config } from "#base/config.ts";
import { appHosts } from "../applications/names.ts";
import type { Finding } from "./finding.ts";

export const hostsOfApps = (config: Config): Finding => {
  const name = "app hosts";
  const hosts = appHosts({ config, accessUrl: accessUrl(config, config.address.port) });
  if (hosts.exist) return { name, status: "ok", detail: `apps open at ${hosts.wildcard}` };
  const remedy =
    "set wildcard_access_url, such as *.apps.example.com, with a DNS entry and a certificate for these names";
  if (config.disable_path_apps) {
    return {
      name,
      status: "warn",
      detail: `apps cannot be opened: disable_path_apps is set and they have no hosts; ${remedy}`,
    };
  }
  if (config.path_apps_same_origin) {
    return {
      name,
      status: "warn",
      detail: `apps have no hosts and can act as their viewer (path_apps_same_origin); ${remedy}`,
    };
  }
  return {
    name,
    status: "warn",
    detail: `apps have no hosts, and most of them stay blank below the access URL; ${remedy}`,
  };
};
