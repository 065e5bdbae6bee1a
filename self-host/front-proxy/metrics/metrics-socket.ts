/** Answers the server, on a socket that only its owner can open, with the metrics of the front proxy. */
import { createServer } from "node:http";
import type { MetricFamily } from "../../../shared/metrics/exposition.ts";

/** @param readFamilies called for each request. */
export function serveMetrics(socketPath: string, readFamilies: () => MetricFamily[]): void {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(readFamilies()));
  });
  // The front proxy works without it.
  server.on("error", (error) =>
    console.error(
      `metrics of the front proxy are not available at ${socketPath}: ${error.message}`,
    ),
  );
  server.listen(socketPath);
}
