/**
 * `npm run dev`: the Worker under `wrangler dev`, which reloads it when a source file changes, with the database,
 * the gateway and the keys of `npm start`. Durable Objects are stored separately from those of `npm start`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { ROOT } from "./build/build.ts";
import { StartError } from "./errors.ts";
import { writePrivateFile } from "./files.ts";
import { createLog } from "./log.ts";
import { findUsablePort } from "./processes/ports.ts";
import { startRelay } from "./relay.ts";
import { readEnvironment, readSettings } from "./settings.ts";
import { startBackendServices, buildWorkerBindings } from "./backend-services.ts";
import { getErrorMessage } from "../shared/error-message.ts";

const log = createLog(process.stdout);

async function main(): Promise<number> {
  await using cleanup = new AsyncDisposableStack();
  const settings = readSettings(readEnvironment(".env", ".dev.vars"));
  const backend = await startBackendServices(settings, log, cleanup, "port");
  const port = await findUsablePort(settings.host, settings.port);
  const bindings = {
    ...buildWorkerBindings(settings, backend, settings.publicPort ?? port),
    GATEWAY_URL: `http://${backend.gateway.address}`,
    WRANGLER_DEV: "true",
  };
  // In a file, because every user of the machine can read the arguments of a process.
  const varsPath = join(backend.dataDir.runDir, "dev.vars");
  await writePrivateFile(varsPath, formatDotenv(bindings));
  if (backend.setup) {
    log.info("this server has no owner yet: create the account with `underpass login --setup`", {
      setupCode: backend.setup.code,
    });
  }

  const wrangler = spawn(
    process.execPath,
    [
      join(
        dirname(createRequire(import.meta.url).resolve("wrangler/package.json")),
        "bin/wrangler.js",
      ),
      "dev",
      ...["--ip", settings.host],
      ...["--port", String(port)],
      ...["--env-file", varsPath],
      ...["--persist-to", join(backend.dataDir.path, "dev")],
      "--show-interactive-dev-session=false",
    ],
    { cwd: ROOT, stdio: "inherit", env: { ...process.env, WRANGLER_SEND_METRICS: "false" } },
  );
  if (settings.relay) {
    // The relay connects as soon as wrangler serves requests.
    const relay = startRelay({
      settings: settings.relay,
      agentRoute: undefined,
      host: settings.host,
      port,
      apiHost: settings.apiHosts[0] ?? "localhost",
      secret: backend.secrets.RELAY_SECRET,
      log,
    });
    cleanup.defer(() => relay.stop());
  }
  // A Ctrl-C at the terminal also reaches wrangler; this process waits until wrangler has exited.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => wrangler.kill("SIGTERM"));
  const [code, signal] = (await once(wrangler, "exit")) as [number | null, string | null];
  return signal === null ? (code ?? 1) : 0;
}

function formatDotenv(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => {
      const mark = ["'", '"', "`"].find((quote) => !value.includes(quote));
      if (mark === undefined) {
        throw new StartError(`${name}: must not contain all three kinds of quotes (' " \`)`);
      }
      return `${name}=${mark}${value}${mark}\n`;
    })
    .join("");
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`underpass: ${getErrorMessage(error)}\n`);
    process.exit(1);
  },
);
