/** Reported by `/health` and by the agent. A test checks that package.json has the same version. */
export const SERVICE_VERSION = "0.3.7";

/** Where every server serves the npm package of the agent in its own version, on the hosts of the API. */
export const AGENT_PACKAGE_PATH = "/underpass.tgz";

/**
 * The command that installs the agent of a server, or updates it to the server's version.
 * @param origin of the server.
 */
export function formatInstallCommand(origin: string): string {
  return `npm install --global ${origin}${AGENT_PACKAGE_PATH}`;
}
