/** Called by the self-hosted server, on a socket that only it can reach. It runs in the isolate of the objects. */
import { WorkerEntrypoint } from "cloudflare:workers";
import { reportLowDisk } from "../../durable-objects/low-disk.ts";
import { parseDiskPath } from "../../protocol/self-host/disk-shortage.ts";

export class ObjectsControl extends WorkerEntrypoint {
  override fetch(request: Request): Response {
    const shortage = parseDiskPath(new URL(request.url).pathname);
    if (!shortage) return new Response(null, { status: 404 });
    reportLowDisk(Date.now(), shortage);
    return new Response(null, { status: 204 });
  }
}
