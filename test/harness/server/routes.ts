/** The routes of the API from its OpenAPI document, for tests that cover all of them. */
import {
  resolveReference,
  type OpenApiDocument,
  type Operation,
} from "../../../workers/api/reference/openapi.ts";
import type { Caller, TestApi } from "./api.ts";

export interface Route extends Omit<Operation, "requestBody"> {
  method: string;
  /** With its parameters in braces. */
  path: string;
  requestBody?: Operation["requestBody"];
}

/** @returns every operation, with the schemas of components in place of the references to them. */
export async function readRoutes({ anonymous }: Pick<TestApi, "anonymous">): Promise<Route[]> {
  const { body } = await anonymous.get<OpenApiDocument>("/openapi.json");
  return Object.entries(body.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      ...(resolveAll(body, operation) as Operation),
      method: method.toUpperCase(),
      path,
    })),
  );
}

function resolveAll(document: OpenApiDocument, part: unknown): unknown {
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map((item) => resolveAll(document, item));
  const { $ref, ...others } = part as { $ref?: string };
  const whole =
    $ref === undefined ? part : { ...(resolveReference(document, $ref) as object), ...others };
  return Object.fromEntries(
    Object.entries(whole).map(([key, value]) => [key, resolveAll(document, value)]),
  );
}

export function formatRoute({ method, path }: Pick<Route, "method" | "path">): string {
  return `${method} ${path}`;
}

/** Whether a person's access token is required, and no other credential is accepted but those of machines too. */
export function isGuarded({ security }: Route): boolean {
  return security.some((scheme) => "accessToken" in scheme || "accessTokenSubprotocol" in scheme);
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

export function hasParameter({ path }: Route): boolean {
  return path.includes("{");
}

/** Runs the check for several routes at the same time. */
export async function forEachRoute(
  of: Route[],
  check: (route: Route) => Promise<void>,
): Promise<void> {
  const CONCURRENT_ROUTES = 10;
  const left = of.values();
  const takeNext = async () => {
    for (const route of left) await check(route);
  };
  await Promise.all(Array.from({ length: CONCURRENT_ROUTES }, takeNext));
}
