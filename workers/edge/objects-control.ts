/** Called by the self-hosted server, on a socket that only it can reach. It runs in the isolate of the objects. */
import { WorkerEntrypoint } from "cloudflare:workers";
import { reportLowDisk, type DiskShortage } from "../../durable-objects/low-disk.ts";

const SHORTAGES: Partial<Record<string, DiskShortage>> = {
  "/disk/low": "low",
  "/disk/critical": "critical",
};

export class ObjectsControl extends WorkerEntrypoint {
  override fetch(request: Request): Response {
    const shortage = SHORTAGES[new URL(request.url).pathname];
    if (!shortage) return new Response(null, { status: 404 });
    reportLowDisk(Date.now(), shortage);
    return new Response(null, { status: 204 });
  }
}
