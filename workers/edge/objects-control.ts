/** Called by the self-hosted server, on a socket that only it can reach. It runs in the isolate of the objects. */
import { WorkerEntrypoint } from "cloudflare:workers";
import { reportLowDisk } from "../../durable-objects/low-disk.ts";

export class ObjectsControl extends WorkerEntrypoint {
  override fetch(request: Request): Response {
    if (new URL(request.url).pathname !== "/low-disk") return new Response(null, { status: 404 });
    reportLowDisk(Date.now());
    return new Response(null, { status: 204 });
  }
}
