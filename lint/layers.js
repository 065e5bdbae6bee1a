/**
 * Which layer may import which: the table of ARCHITECTURE.md. A test compares the two, and plants a forbidden import
 * for every layer. A file belongs to the layer with the longest matching path; every source file belongs to one.
 */
const EVERYTHING = ["*"];
const LIVE_STATE = ["shared", "protocol", "access", "durable-objects"];
const WORKER = [...LIVE_STATE, "workers/config", "workers"];

/** Each layer with the layers that it may import, besides itself. */
export const LAYERS = {
  shared: [],
  protocol: ["shared"],
  access: ["shared", "protocol"],
  "durable-objects": ["shared", "protocol", "access"],
  "workers/config": ["shared", "protocol"],
  workers: [...LIVE_STATE, "workers/config"],
  "workers/store": WORKER,
  "workers/identity": [...WORKER, "workers/store"],
  "workers/integrations": [...WORKER, "workers/store", "workers/identity"],
  "workers/jobs": [...WORKER, "workers/store", "workers/identity", "workers/integrations"],
  "workers/api": [
    ...WORKER,
    "workers/store",
    "workers/identity",
    "workers/integrations",
    "workers/jobs",
    "dashboard",
    "agent/underpass.schema.json",
  ],
  "workers/edge": WORKER,
  "workers/internal-api": [
    ...WORKER,
    "workers/store",
    "workers/identity",
    "workers/jobs",
    "workers/api",
  ],
  "workers/index.ts": [
    ...WORKER,
    "workers/internal-api",
    "workers/edge",
    "workers/api",
    "workers/jobs",
  ],
  sockets: ["shared", "protocol"],
  agent: ["shared", "protocol", "sockets"],
  "agent/commands": ["shared", "protocol", "sockets", "agent"],
  "agent/cli": ["shared", "protocol", "sockets", "agent", "agent/commands"],
  "agent/bin": ["agent", "agent/cli"],
  "agent/underpass.schema.json": [],
  relay: ["shared", "protocol", "sockets"],
  "self-host": ["shared", "protocol", "sockets", "workers/config"],
  dashboard: ["shared", "protocol"],
  lint: [],
  migrations: [],
  packaging: [],
  examples: [],
  bench: EVERYTHING,
  chaos: EVERYTHING,
  test: EVERYTHING,
};

/**
 * @param path from the root of the repository, with slashes.
 * @returns the layer of a file; undefined for one that belongs to none.
 */
export function findLayer(path) {
  return Object.keys(LAYERS)
    .filter((layer) => path === layer || path.startsWith(`${layer}/`))
    .sort((a, b) => b.length - a.length)[0];
}

export function mayImport(layer, imported) {
  const allowed = LAYERS[layer];
  return layer === imported || allowed === EVERYTHING || allowed.includes(imported);
}
