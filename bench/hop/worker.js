// The lower bound for a tunnel on this platform: one Worker, one call of one object, one response.
import { DurableObject } from "cloudflare:workers";

export class Hop extends DurableObject {
  fetch() {
    return new Response("Hello World!\n");
  }
}

let id;

export default {
  fetch(request, env) {
    id ??= env.HOP.idFromName("hop");
    return env.HOP.get(id).fetch(request);
  },
};
