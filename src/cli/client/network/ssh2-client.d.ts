// Types for one file of the package ssh2, whose own types cover only its main module.
declare module "ssh2/lib/client.js" {
  import { Client } from "ssh2";
  export default Client;
}
