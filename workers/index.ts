/**
 * The entry points of the Worker. The API is an entry point of its own, and imported dynamically, so that an isolate that
 * serves visitors loads only the edge.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import { reportLowDisk } from "../durable-objects/low-disk.ts";
import type { CronResult } from "../protocol/self-host/cron-result.ts";
import { parseDiskPath } from "../protocol/self-host/disk-shortage.ts";
import { startDraining } from "./draining.ts";
import edge from "./edge/entry.ts";
import type { Env } from "./env.ts";
import { describeError } from "./errors.ts";
import { apiGarbageCollection } from "../shared/garbage-collection.ts";
import { log } from "../shared/log.ts";

export * from "./edge/entry.ts";
export { InternalApi } from "./internal-api/entry-point.ts";

export default {
  ...edge,

  async scheduled(_event, env): Promise<void> {
    const { runCron } = await import("./jobs/cron.ts");
    await runCron(env);
  },
} satisfies ExportedHandler<Env>;

/** The management API. */
export class Api extends WorkerEntrypoint<Env> {
  override async fetch(request: Request): Promise<Response> {
    apiGarbageCollection.countRequest();
    const { handleApi } = await import("./api/app.ts");
    return handleApi(request, this.env, this.ctx);
  }
}

/** Called by the self-hosted server, on a socket that only it can reach. */
export class Control extends WorkerEntrypoint<Env> {
  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    try {
      return await this.#handle(pathname);
    } catch (error) {
      // workerd would log each line of the query that failed.
      log("error", "control_failed", { path: pathname, cause: describeError(error) });
      return new Response(null, { status: 503 });
    }
  }

  async #handle(pathname: string): Promise<Response> {
    if (pathname === "/metrics") {
      const { collectServiceMetrics } = await import("./jobs/service-metrics.ts");
      return Response.json(await collectServiceMetrics(this.env));
    }
    const shortage = parseDiskPath(pathname);
    if (shortage) {
      reportLowDisk(Date.now(), shortage);
    } else if (pathname === "/drain") {
      const { drainConnections } = await import("./jobs/drain-connections.ts");
      startDraining();
      await drainConnections(this.env);
    } else if (pathname === "/cron") {
      const { runCron } = await import("./jobs/cron.ts");
      return Response.json({ failed: await runCron(this.env) } satisfies CronResult);
    } else return new Response(null, { status: 404 });
    return new Response(null, { status: 204 });
  }
}
