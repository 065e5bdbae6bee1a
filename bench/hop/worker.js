// The least that a tunnel on this platform could do: one Worker, one call to one object, one answer.
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
