// One file of the package, which has types for the whole only.
declare module "ssh2/lib/client.js" {
  import { Client } from "ssh2";
  export default Client;
}
