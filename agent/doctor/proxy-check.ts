/** The proxy that the environment names for the server: whether it is used, reached, and lets the agent through. */
import { getProxyForUrl } from "proxy-from-env";
import { getErrorMessage } from "../error-message.ts";
import { getErrorCode, ok, problem, type Outcome } from "./check.ts";
import { formatProxy, getHost, getPort, openThroughProxy, type Route } from "./route.ts";
import type { Settings } from "./settings-check.ts";

export async function checkProxy(settings: Settings, signal: AbortSignal): Promise<Outcome<Route>> {
  const { server } = settings;
  const tried = "reading HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY";
  const address = getProxyForUrl(server.href);
  const variable = findVariable(server);
  if (address === "") {
    const result =
      variable === undefined
        ? "none is set: connections are direct"
        : `${variable} is set, but NO_PROXY excludes this server: connections are direct`;
    return ok(tried, result, { ...settings, proxy: null });
  }
  const name = variable ?? "the environment";
  if (!URL.canParse(address)) {
    return problem(tried, `${name} is not a URL`, `Set it to a URL such as http://proxy:3128.`);
  }
  const proxy = new URL(address);
  if (proxy.protocol !== "http:" && proxy.protocol !== "https:") {
    return problem(
      tried,
      `${name} names a proxy of the kind ${proxy.protocol.slice(0, -1)}, which the agent does not support`,
      `Set ${server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY"} to an HTTP proxy, or add ${server.hostname} to NO_PROXY.`,
    );
  }
  return connectThrough({ ...settings, proxy }, name, signal);
}

async function connectThrough(
  route: Route & { proxy: URL },
  variable: string,
  signal: AbortSignal,
): Promise<Outcome<Route>> {
  const { proxy, server } = route;
  const target = `${server.hostname}:${getPort(server)}`;
  const via = `${formatProxy(proxy)} (${variable})`;
  const tried = `connecting to ${target} through ${via}`;
  const bypass = `If the server can be reached without it, add ${server.hostname} to NO_PROXY.`;
  let answer: Awaited<ReturnType<typeof openThroughProxy>>;
  try {
    answer = await openThroughProxy(proxy, server, signal);
  } catch (error) {
    const reason = describeFailure(getErrorCode(error), error);
    return problem(tried, `the proxy ${via} ${reason}`, `Correct ${variable}. ${bypass}`);
  }
  if (typeof answer !== "number") {
    answer.destroy();
    return ok(tried, `${via} connects to ${target}`, route);
  }
  if (answer === 407) {
    return proxy.username === ""
      ? problem(
          tried,
          `the proxy ${via} requires a user name and a password (407)`,
          `Add them to ${variable}: ${proxy.protocol}//USER:PASSWORD@${proxy.host}. ${bypass}`,
        )
      : problem(
          tried,
          `the proxy ${via} does not accept the user name and password in ${variable} (407)`,
          `Correct them there; special characters must be percent-encoded. ${bypass}`,
        );
  }
  if (answer === 502 || answer === 503 || answer === 504) {
    return problem(
      tried,
      `the proxy ${via} can't reach ${target} (${answer})`,
      `Check the server's address. ${bypass}`,
    );
  }
  return problem(
    tried,
    `the proxy ${via} does not allow connections to ${target} (${answer})`,
    `Ask its administrator to allow CONNECT to ${target}. ${bypass}`,
  );
}

function describeFailure(code: string, error: unknown): string {
  switch (code) {
    case "ECONNREFUSED":
      return "refuses connections";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "has a name that can't be resolved";
    case "ETIMEDOUT":
    case "ABORT_ERR":
      return "does not answer";
    default:
      return `failed: ${getErrorMessage(error)}`;
  }
}

/** The variable that names a proxy for the server, whether or not NO_PROXY excludes it. */
function findVariable(server: URL): string | undefined {
  const scheme = server.protocol.slice(0, -1);
  const names = [`${scheme}_proxy`, "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
  const found = names.find((name) => process.env[name]);
  return found === undefined || getHost(server) === "" ? undefined : found;
}
