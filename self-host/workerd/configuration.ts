/**
 * The configuration of workerd, in Cap'n Proto text format. Settings that also apply on Cloudflare are read from
 * wrangler.toml, so that both run the Worker in the same way.
 */
import { join, relative } from "node:path";
import { WORKER_DIR, WORKER_MODULES } from "../build/build.ts";
import { DASHBOARD_DIR } from "../build/dashboard.ts";
import { readWorkerModules, type WorkerEntryPoint } from "../build/worker-modules.ts";
import type { DataDir } from "../data-dir.ts";
import { CF_BLOB_HEADER } from "../../shared/client-address.ts";
import { WORKERD_V8_FLAGS } from "../processes/v8-flags.ts";
import { WRANGLER_CONFIG } from "./wrangler-config.ts";

interface ConfigurationOptions {
  dataDir: DataDir;
  /** Where workerd takes requests of visitors and of callers of the API, such as `unix:/path` or `127.0.0.1:80`. */
  publicAddress: string;
  /**
   * The path of the socket on which workerd takes requests that are known to be for the API: one Worker handles them,
   * not two.
   */
  apiSocket: string;
  /** The path of the socket that workerd takes requests of the server itself on. */
  controlSocket: string;
  /** The same for the isolate of the objects. */
  objectsControlSocket: string;
  /** The path of the socket on which workerd answers without running any code of a Worker. */
  probeSocket: string;
  /** The path of the socket on which the front proxy takes requests of the Worker. */
  frontControlSocket: string;
  gatewayAddress: string;
  allowPrivateFetch: boolean;
  /** Names only: the values are in the environment of the process, so that this file contains no secrets. */
  bindingNames: string[];
}

export async function buildConfiguration(options: ConfigurationOptions): Promise<string> {
  const { dataDir, publicAddress, apiSocket, probeSocket, gatewayAddress } = options;
  const { controlSocket, objectsControlSocket, frontControlSocket } = options;
  const reach = options.allowPrivateFetch ? ["public", "private"] : ["public"];
  const [edge, api] = await Promise.all([
    formatWorker(options, "edge"),
    formatWorker(options, "index"),
  ]);
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  v8Flags = ${formatList(WORKERD_V8_FLAGS.map(quote))},
  services = [
    # Each service has an isolate, and the garbage collector stops one for as long as it traces what that one holds. So
    # the edge and the objects do not share one with the API, which is most of the code.
    (name = "main", worker = (${edge},
      durableObjectNamespaces = ${formatList(WRANGLER_CONFIG.objects.map(formatObjectNamespace))},
      durableObjectStorage = (localDisk = "objects"),
    )),
    (name = "api", worker = (${api})),
    # For URLs that tenants name: never reaches this machine or its network.
    (name = "internet", network = (
      allow = ${formatList(reach.map(quote))},
      tlsOptions = (trustBrowserCas = true),
    )),
    # For URLs that the operator configures, which may be on this machine or its network.
    (name = "operator-network", network = (
      allow = ["public", "private"],
      tlsOptions = (trustBrowserCas = true),
    )),
    (name = "gateway", external = (address = ${quote(gatewayAddress)}, http = ())),
    (name = "front-proxy", external = (address = ${quote(`unix:${frontControlSocket}`)}, http = ())),
    (name = "assets", disk = (path = ${quote(DASHBOARD_DIR)})),
    (name = "objects", disk = (path = ${quote(dataDir.objectsDir)}, writable = true)),
  ],
  sockets = [
    (name = "main", address = ${quote(publicAddress)}, service = "main",
      http = (cfBlobHeader = ${quote(CF_BLOB_HEADER)})),
    (name = "api", address = ${quote(`unix:${apiSocket}`)},
      service = (name = "api", entrypoint = "Api"),
      http = (cfBlobHeader = ${quote(CF_BLOB_HEADER)})),
    (name = "control", address = ${quote(`unix:${controlSocket}`)}, http = (),
      service = (name = "api", entrypoint = "Control")),
    (name = "objects-control", address = ${quote(`unix:${objectsControlSocket}`)}, http = (),
      service = (name = "main", entrypoint = "ObjectsControl")),
    (name = "probe", address = ${quote(`unix:${probeSocket}`)}, http = (), service = "assets"),
  ],
);
`;
}

/** The Worker's settings and bindings, which the services have in common, and the modules of one of its entry points. */
async function formatWorker(
  { dataDir, bindingNames }: ConfigurationOptions,
  entryPoint: WorkerEntryPoint,
): Promise<string> {
  const modules = await readWorkerModules(WORKER_MODULES, entryPoint);
  return `
      modules = ${formatList(modules.map((name) => formatModule(name, dataDir.runDir)))},
      compatibilityDate = ${quote(WRANGLER_CONFIG.compatibilityDate)},
      compatibilityFlags = ${formatList(WRANGLER_CONFIG.compatibilityFlags.map(quote))},
      bindings = ${formatList([
        ...WRANGLER_CONFIG.objects.map(
          ({ binding, className }) =>
            `(name = ${quote(binding)}, durableObjectNamespace = (className = ${quote(className)}, serviceName = "main"))`,
        ),
        `(name = "API", service = (name = "api", entrypoint = "Api"))`,
        `(name = "INTERNAL_API", service = (name = "api", entrypoint = "InternalApi"))`,
        `(name = "ASSETS", service = "assets")`,
        `(name = "OPERATOR_NETWORK", service = "operator-network")`,
        `(name = "FRONT_PROXY", service = "front-proxy")`,
        `(name = "DATABASE_GATEWAY", service = "gateway")`,
        `(name = "MAIL_GATEWAY", service = "gateway")`,
        ...bindingNames.map((name) => `(name = ${quote(name)}, fromEnvironment = ${quote(name)})`),
      ])}`;
}

function formatModule(name: string, runDir: string): string {
  const kind = name.endsWith(".wasm") ? "wasm" : "esModule";
  const path = relative(runDir, join(WORKER_DIR, name));
  return `(name = ${quote(name)}, ${kind} = embed ${quote(path)})`;
}

/** Classes that were renamed after data directories had been created. */
const ORIGINAL_CLASS_NAMES: Record<string, string> = { RateLimiter: "AddressLimiter" };

/**
 * The unique key names the directory of the class's objects: a new key would start an empty namespace. So a
 * renamed class keeps the key of its first name, as `renamed_classes` does on Cloudflare.
 */
function formatObjectNamespace({ className }: { className: string }): string {
  const uniqueKey = `underpass-${ORIGINAL_CLASS_NAMES[className] ?? className}`;
  return `(className = ${quote(className)}, uniqueKey = ${quote(uniqueKey)}, enableSql = true)`;
}

function quote(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

function formatList(items: string[]): string {
  return items.length === 0 ? "[]" : `[\n        ${items.join(",\n        ")},\n      ]`;
}
