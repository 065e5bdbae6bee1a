/** This machine: the version of Node.js, and how many files a process may have open. */
import { ORIGIN_CONNECTIONS_MAX } from "../limits.ts";
import packageJson from "../package.json" with { type: "json" };
import { ok, problem, skipped, warning, type Outcome } from "./check.ts";

const NODE_MIN_VERSION = packageJson.engines.node.replace(">=", "");
/** Beside the connections to the local server: the connection to the service, the terminal, files of Node.js itself. */
const OTHER_FILES = 64;
const FILES_NEEDED = ORIGIN_CONNECTIONS_MAX + OTHER_FILES;

export function checkNode(version = process.versions.node): Outcome {
  const tried = "reading the version of Node.js";
  const result = `Node.js ${version} on ${process.platform} ${process.arch}`;
  const isNewEnough = version.localeCompare(NODE_MIN_VERSION, "en", { numeric: true }) >= 0;
  if (isNewEnough) return ok(tried, result);
  return problem(
    tried,
    `${result} is too old`,
    `Install Node.js ${NODE_MIN_VERSION} or newer from https://nodejs.org.`,
  );
}

/** @param limit the number of files that this process may open; "unlimited" and undefined as the system reports them. */
export function checkOpenFiles(limit = readFileLimit()): Outcome {
  if (limit === undefined) return skipped("this system has no limit of open files for a process");
  const tried = `comparing the limit of open files with the ${FILES_NEEDED} that a busy tunnel needs`;
  if (limit === "unlimited" || limit >= FILES_NEEDED) return ok(tried, `at most ${limit}`);
  return warning(
    tried,
    `only ${limit} files may be open: with more than about ${Math.max(1, limit - OTHER_FILES)} requests at once, some fail`,
    `Raise the limit in the shell that starts the agent: ulimit -n 4096`,
  );
}

function readFileLimit(): number | "unlimited" | undefined {
  // Otherwise the report resolves the names of all peers. The types do not know this property yet.
  Object.assign(process.report, { excludeNetwork: true });
  const report = process.report.getReport() as {
    userLimits?: { open_files?: { soft: number | "unlimited" } };
  };
  return report.userLimits?.open_files?.soft;
}
