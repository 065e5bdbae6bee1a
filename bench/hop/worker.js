// The lower bounds for a tunnel on this platform: a bare call of one object, and a bare tunnel for the host `tunnel`.
import { DurableObject } from "cloudflare:workers";
export { BareTunnel } from "./bare-tunnel.js";

export class Hop extends DurableObject {
  fetch() {
    return new Response("Hello World!\n");
  }
}

let hopId;
let tunnelId;

export default {
  fetch(request, env) {
    if (request.url.startsWith("http://tunnel/")) {
      tunnelId ??= env.TUNNEL.idFromName("tunnel");
      return env.TUNNEL.get(tunnelId).fetch(request);
    }
    hopId ??= env.HOP.idFromName("hop");
    return env.HOP.get(hopId).fetch(request);
  },
};
