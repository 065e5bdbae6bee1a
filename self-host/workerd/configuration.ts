/**
 * The configuration of workerd, in its own language. What Cloudflare runs the Worker with is in
 * wrangler.toml; the few lines of it that hold here too are read from there, so that both run the same.
 */
import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join, relative } from "node:path";
import { ROOT, WORKER_DIR } from "../build/build.ts";
import type { DataDir } from "../data-dir.ts";

/** A small young generation: short pauses and little memory, at the same throughput. */
export const V8_FLAGS = ["--max-semi-space-size=1", "--min-semi-space-size=1"];

export const WRANGLER_CONFIG = parseWranglerConfig(readFileSync(join(ROOT, "wrangler.toml"), "utf8"));

export interface ConfigurationOptions {
  dataDir: DataDir;
  host: string;
  port: number;
  controlSocket: string;
  gatewayAddress: string;
  allowPrivateFetch: boolean;
  /** Their values are in the environment of the process: nothing in this file is secret. */
  bindingNames: string[];
}

export async function buildConfiguration(options: ConfigurationOptions): Promise<string> {
  const { dataDir, host, port, controlSocket, gatewayAddress, bindingNames } = options;
  const reach = options.allowPrivateFetch ? ["public", "private"] : ["public"];
  const address = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  v8Flags = ${formatList(V8_FLAGS.map(quote))},
  services = [
    (name = "main", worker = (
      modules = ${formatList(await listModules(dataDir.runDir))},
      compatibilityDate = ${quote(WRANGLER_CONFIG.compatibilityDate)},
      compatibilityFlags = ${formatList(WRANGLER_CONFIG.compatibilityFlags.map(quote))},
      durableObjectNamespaces = ${formatList(WRANGLER_CONFIG.objects.map(objectNamespace))},
      durableObjectStorage = (localDisk = "objects"),
      bindings = ${formatList([
        ...WRANGLER_CONFIG.objects.map(
          ({ binding, className }) =>
            `(name = ${quote(binding)}, durableObjectNamespace = ${quote(className)})`,
        ),
        `(name = "ROWS", service = (name = "main", entrypoint = "Rows"))`,
        `(name = "OPERATOR_NETWORK", service = "operator-network")`,
        `(name = "DATABASE_GATEWAY", service = "gateway")`,
        `(name = "MAIL_GATEWAY", service = "gateway")`,
        ...bindingNames.map((name) => `(name = ${quote(name)}, fromEnvironment = ${quote(name)})`),
      ])},
    )),
    # What tenants name is fetched from here: never from this machine or its network.
    (name = "internet", network = (
      allow = ${formatList(reach.map(quote))},
      tlsOptions = (trustBrowserCas = true),
    )),
    # What the operator configures may well be on this machine or its network.
    (name = "operator-network", network = (
      allow = ["public", "private"],
      tlsOptions = (trustBrowserCas = true),
    )),
    (name = "gateway", external = (address = ${quote(gatewayAddress)}, http = ())),
    (name = "objects", disk = (path = ${quote(dataDir.objectsDir)}, writable = true)),
  ],
  sockets = [
    (name = "main", address = ${quote(address)}, http = (), service = "main"),
    (name = "control", address = ${quote(`unix:${controlSocket}`)}, http = (),
      service = (name = "main", entrypoint = "Control")),
  ],
);
`;
}

/** The entry first, as workerd wants it. */
async function listModules(runDir: string): Promise<string[]> {
  const names = (await readdir(WORKER_DIR)).filter((name) => /\.(js|wasm)$/.test(name));
  return names
    .sort((a, b) => Number(b === "index.js") - Number(a === "index.js"))
    .map((name) => {
      const kind = name.endsWith(".wasm") ? "wasm" : "esModule";
      const path = relative(runDir, join(WORKER_DIR, name));
      return `(name = ${quote(name)}, ${kind} = embed ${quote(path)})`;
    });
}

/** Classes that were renamed after data directories had been created. */
const ORIGINAL_CLASS_NAMES: Record<string, string> = { RateLimiter: "AddressLimiter" };

/**
 * The unique key names the directory of the class's objects: a new key would start an empty namespace. So a
 * renamed class keeps the key of its first name, as `renamed_classes` does on Cloudflare.
 */
function objectNamespace({ className }: { className: string }): string {
  const uniqueKey = `underpass-${ORIGINAL_CLASS_NAMES[className] ?? className}`;
  return `(className = ${quote(className)}, uniqueKey = ${quote(uniqueKey)}, enableSql = true)`;
}

interface WranglerConfig {
  compatibilityDate: string;
  compatibilityFlags: string[];
  objects: { binding: string; className: string }[];
}

export function parseWranglerConfig(toml: string): WranglerConfig {
  const [, compatibilityDate] = /^compatibility_date = "(.+)"$/m.exec(toml) ?? [];
  const [, flags = ""] = /^compatibility_flags = \[(.*)\]$/m.exec(toml) ?? [];
  const objects = toml.matchAll(
    /^\[\[durable_objects\.bindings\]\]\nname = "(.+)"\nclass_name = "(.+)"$/gm,
  );
  if (compatibilityDate === undefined) throw new Error("wrangler.toml has no compatibility_date");
  return {
    compatibilityDate,
    compatibilityFlags: [...flags.matchAll(/"(.+?)"/g)].map(([, flag = ""]) => flag),
    objects: [...objects].map(([, binding = "", className = ""]) => ({ binding, className })),
  };
}

function quote(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

function formatList(items: string[]): string {
  return items.length === 0 ? "[]" : `[\n        ${items.join(",\n        ")},\n      ]`;
}
