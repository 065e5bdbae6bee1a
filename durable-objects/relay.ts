/** One relay's link to the service: what it reports, and what it has to be told. */
import { DurableObject } from "cloudflare:workers";
import type { ObjectBindings } from "./bindings.ts";

export class Relay extends DurableObject<ObjectBindings> {}
