/** Runs the linter on texts, to test the project's own rules. */
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { ROOT } from "../../self-host/build/build.ts";
import { createTemporaryDir } from "./directories.ts";

export interface Violation {
  path: string;
  line: number;
  message: string;
}

/**
 * Lints files in a directory of their own with the project's configuration.
 *
 * @param rule as oxlint reports it, such as `eslint(no-var)`.
 * @param files texts by path.
 */
export async function lintFiles(rule: string, files: Record<string, string>): Promise<Violation[]> {
  const dir = await createTemporaryDir();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(dir, dirname(path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
  const bin = join(ROOT, "node_modules/.bin");
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
  const args = ["--config", join(ROOT, ".oxlintrc.json"), "--format", "json", "."];
  const report = await new Promise<string>((resolve) => {
    // It exits with 1, because there are violations.
    const options = { cwd: dir, env, maxBuffer: 2 ** 26 };
    execFile(join(bin, "oxlint"), args, options, (_error, out) => resolve(out));
  });
  await rm(dir, { recursive: true });
  const { diagnostics } = JSON.parse(report) as {
    diagnostics: {
      code: string;
      filename: string;
      message: string;
      labels: { span: { line: number } }[];
    }[];
  };
  return diagnostics
    .filter(({ code }) => code === rule)
    .map(({ filename, message, labels }) => ({
      path: filename,
      line: labels[0]!.span.line,
      message,
    }));
}
