/** The routes of the API from its OpenAPI document, for tests that cover all of them. */
import type { Caller, TestApi } from "./api.ts";

export interface Route {
  method: string;
  /** With its parameters in braces. */
  path: string;
  security?: unknown[];
  requestBody?: unknown;
  responses: Record<string, unknown>;
}

export async function readRoutes(api: TestApi): Promise<Route[]> {
  const { body } = await api.anonymous.get<{
    paths: Record<string, Record<string, Omit<Route, "method" | "path">>>;
  }>("/openapi.json");
  return Object.entries(body.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  );
}

export function formatRoute({ method, path }: Pick<Route, "method" | "path">): string {
  return `${method} ${path}`;
}

/** These require credentials of agents or relays, not of people. */
const FOR_MACHINES = new Set([
  "/agent/connect",
  "/agent/streams",
  "/relays/connect",
  "/tunnels/{id}/relay-ticket",
]);

export function isGuarded({ security, path }: Route): boolean {
  return security !== undefined && !FOR_MACHINES.has(path);
}

/** A value for every parameter, which names nothing that exists. Add new parameters here. */
const UNKNOWN_VALUES: Record<string, string> = {
  "{id}": "00000000-0000-4000-8000-000000000000",
  "{user_id}": "00000000-0000-4000-8000-000000000000",
  "{invitation_id}": "00000000-0000-4000-8000-000000000000",
  "{device_id}": "00000000-0000-4000-8000-000000000000",
  "{agent_id}": "00000000-0000-4000-8000-000000000000",
  "{nonce}": "0".repeat(32),
  "{slug}": "nowhere",
};

/** @param values of parameters; missing ones are replaced by values that name nothing that exists. */
export function buildPath({ path }: Route, values: Record<string, string> = {}): string {
  return path.replace(/\{\w+\}/g, (name) => {
    const value = values[name] ?? UNKNOWN_VALUES[name];
    if (value === undefined)
      throw new Error(`no value for ${name}: add one to test/harness/server/routes.ts`);
    return value;
  });
}

/** Sends a request, by default without a body. @returns the status. */
export async function requestStatus(
  route: Route,
  by: Caller,
  values?: Record<string, string>,
  body?: unknown,
): Promise<number> {
  const init =
    body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await by.send(route.method, buildPath(route, values), init)).status;
}
